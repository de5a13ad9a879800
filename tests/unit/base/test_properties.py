"""Properties files as Java reads them, the environment, and words of the command line."""

from __future__ import annotations

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.properties import parse_assignments, parse_environment, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb=2", {"a": "1", "b": "2"}),
        ("a=1\r\nb=2\r", {"a": "1", "b": "2"}),
        ("  a = 1 ", {"a": "1 "}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a", {"a": ""}),
        ("# a=1\n ! b=2\n\n", {}),
        ("a=1,\\\n   2,\\\n   3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a=b=c", {"a": "b=c"}),
        ("a\\ b=1", {"a b": "1"}),
        ("dir=C\\:\\\\x\\ty", {"dir": "C:\\x\ty"}),
        ("a=\\u00e9", {"a": "é"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=1\\\n# joined", {"a": "1# joined"}),
        ("a=1\\", {"a": "1"}),
        ("a=x\x0cy\u2028z", {"a": "x\x0cy\u2028z"}),
    ],
)
def test_a_properties_file_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\ud800"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="no character"):
        parse_properties(text)


def test_the_environment_names_keys_in_capitals() -> None:
    environment = {"TARRY_LOG_DIRS": "/x", "TARRY_NODE_ID": "3", "HOME": "/root"}

    assert parse_environment(environment) == {"log.dirs": "/x", "node.id": "3"}


def test_our_own_names_of_the_environment_are_no_settings() -> None:
    names = ("TARRY_PURE", "TARRY_CONFIG", "TARRY_BOOTSTRAP_SERVERS", "TARRY_TEST_KAFKA")

    assert parse_environment(dict.fromkeys(names, "x")) == {}


def test_a_later_assignment_wins() -> None:
    assert parse_assignments(["a=1", "b = x=y ", "a=2"]) == {"a": "2", "b": "x=y"}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_word_without_key_or_equals_sign_is_refused(word: str) -> None:
    with pytest.raises(InvalidSetting, match="write key=value"):
        parse_assignments([word])
