"""The schema notation: what each word of a line means, and what is refused."""

from __future__ import annotations

import pytest

from tarry.protocol.schema import Versions, load_all, parse
from tarry.protocol.schema.notation import VERSION_LAST, InvalidSchema, parse_versions, snake_case

HEAD = "api 99 Example 2-5 flexible 4+\n"
TAIL = "\nresponse\n    error_code i16\n"


def fields_of(lines: str) -> list[object]:
    api = parse(f"{HEAD}request\n{lines}{TAIL}")
    return list(api.request.fields)


def test_the_head_names_key_versions_and_the_first_flexible_one() -> None:
    api = parse(f"{HEAD}request\n    acks i16{TAIL}")

    assert (api.key, api.name, api.snake_name) == (99, "Example", "example")
    assert api.versions == Versions(2, 5)
    assert api.flexible == Versions(4, 5)


def test_an_api_may_have_no_flexible_version() -> None:
    api = parse(f"api 17 Example 0-1\nrequest\n    acks i16{TAIL}")

    assert api.flexible is None


def test_a_field_without_versions_has_all_of_the_apis() -> None:
    (field,) = fields_of("    acks i16\n")

    assert field.versions == Versions(2, 5)
    assert (field.type_name, field.is_array, field.nullable, field.default) == (
        "i16",
        False,
        None,
        None,
    )


def test_every_word_of_a_line_is_understood() -> None:
    (field,) = fields_of("    rack  string?4+  3-9 key ignorable tag 7 = null  # a comment\n")

    assert field.versions == Versions(3, 5)
    assert field.nullable == Versions(4, 5)
    assert (field.tag, field.default) == (7, "null")
    assert field.is_key
    assert field.is_ignorable


def test_a_struct_stands_below_its_field_and_takes_its_versions() -> None:
    api = parse(
        f"{HEAD}request\n"
        "    topics   [Topic]  3+\n"
        "        name  string\n"
        "        ids   [i32]?  5\n"
        f"    acks     i16{TAIL}"
    )

    topic = api.structs["Topic"]
    assert [field.name for field in topic.fields] == ["name", "ids"]
    assert topic.fields[0].versions == Versions(3, 5)
    assert topic.fields[1].versions == Versions(5, 5)
    assert topic.fields[1].nullable == Versions(5, 5)
    assert [field.name for field in api.request.fields] == ["topics", "acks"]


def test_a_structs_second_use_just_names_it() -> None:
    api = parse(
        f"{HEAD}request\n    cursor Cursor? = null\n        topic string\n"
        "response\n    next_cursor Cursor? = null\n"
    )

    assert api.response.fields[0].type_name == "Cursor"
    assert [field.name for field in api.structs["Cursor"].fields] == ["topic"]


def test_a_struct_may_stand_in_a_block_of_its_own() -> None:
    api = parse(f"{HEAD}struct Cursor\n    topic string\nrequest\n    cursor Cursor{TAIL}")

    assert [field.name for field in api.structs["Cursor"].fields] == ["topic"]


def test_a_structs_second_use_must_not_have_more_versions_than_its_first() -> None:
    with pytest.raises(InvalidSchema, match="fewer versions"):
        parse(f"{HEAD}request\n    new [Topic] 4+\n        name string\n    old [Topic] 2-3{TAIL}")


@pytest.mark.parametrize(
    "lines",
    [
        "  acks i16",
        "        acks i16",
        "    acks",
        "    Acks i16",
        "    acks i17",
        "    acks [i16",
        "    acks i16 soon",
        "    acks i16 = x",
        "    acks i16 =",
        "    acks i16 = 1 2",
        "    acks i16 tag",
        "    acks i16 tag x",
        "    acks i16 9+",
        "    acks string?9+",
    ],
)
def test_a_line_that_is_not_in_the_notation_is_refused_by_name(lines: str) -> None:
    with pytest.raises(InvalidSchema, match=lines.strip().split()[0]):
        fields_of(lines + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api 1 Example",
        "api x Example 0",
        "api 1 Example 0 flexibel 1+",
        f"{HEAD}request\n    acks i16\n",
        f"{HEAD}request\n    acks i16\nrequest\n    acks i16{TAIL}",
        f"{HEAD}request\n    topics [Topic]\n    acks i16{TAIL}",
        f"{HEAD}something\n    acks i16{TAIL}",
    ],
    ids=["empty", "no versions", "no key", "typo", "no response", "twice", "no fields", "block"],
)
def test_a_file_that_is_not_in_the_notation_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text)


def test_versions_are_written_as_kafka_writes_them() -> None:
    assert parse_versions("3+") == Versions(3, VERSION_LAST)
    assert parse_versions("3-7") == Versions(3, 7)
    assert parse_versions("3") == Versions(3, 3)


@pytest.mark.parametrize(
    ("name", "snake"),
    [("TimeoutMs", "timeout_ms"), ("timeoutMs", "timeout_ms"), ("LastKnownElr", "last_known_elr")],
)
def test_names_are_kafkas_in_snake_case(name: str, snake: str) -> None:
    assert snake_case(name) == snake


def test_the_apis_of_the_project_are_sorted_by_key() -> None:
    keys = [api.key for api in load_all()]

    assert keys == sorted(keys)
    assert len(keys) == len({*keys})
