"""Properties files as Java reads them, the environment, and words of the command line."""

from __future__ import annotations

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.properties import SettingTexts


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
    given = SettingTexts()

    given.add_properties(text, "server.properties")

    assert given.texts == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\ud800"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(
        InvalidSetting, match=r"not a character.*\(file server\.properties line 1\)"
    ):
        SettingTexts().add_properties(text, "server.properties")


def test_a_key_of_a_file_is_told_by_the_line_at_which_it_begins() -> None:
    given = SettingTexts()

    given.add_properties("# first\n\na=1,\\\n  2\r\nb=3", "server.properties")

    assert given.sources == {
        "a": "file server.properties line 3",
        "b": "file server.properties line 5",
    }


def test_the_environment_names_keys_in_capitals() -> None:
    given = SettingTexts()

    given.add_environment({"TARRY_LOG_DIRS": "/x", "TARRY_NODE_ID": "3", "HOME": "/root"})

    assert given.texts == {"log.dirs": "/x", "node.id": "3"}
    assert given.sources["log.dirs"] == "environment TARRY_LOG_DIRS"


def test_our_own_names_of_the_environment_are_no_settings() -> None:
    names = (
        "TARRY_BOOTSTRAP_SERVERS",
        "TARRY_COMPILE",
        "TARRY_CONFIG",
        "TARRY_PROFILE",
        "TARRY_PROFILES",
        "TARRY_PURE",
        "TARRY_TEST_KAFKA",
    )
    given = SettingTexts()

    given.add_environment(dict.fromkeys(names, "x"))

    assert given.texts == {}


def test_what_kubernetes_puts_beside_a_service_named_tarry_is_no_setting() -> None:
    given = SettingTexts()

    given.add_environment(
        {
            "TARRY_PORT": "tcp://10.0.0.7:9092",
            "TARRY_PORT_9092_TCP": "tcp://10.0.0.7:9092",
            "TARRY_PORT_9092_TCP_ADDR": "10.0.0.7",
            "TARRY_PORT_9092_TCP_PORT": "9092",
            "TARRY_PORT_9092_TCP_PROTO": "tcp",
            "TARRY_SERVICE_HOST": "10.0.0.7",
            "TARRY_SERVICE_PORT": "9092",
            "TARRY_SERVICE_PORT_KAFKA": "9092",
        }
    )

    assert given.texts == {}


def test_a_port_that_kubernetes_would_not_write_is_taken_for_a_setting() -> None:
    given = SettingTexts()

    given.add_environment({"TARRY_PORT": "9092"})

    assert given.texts == {"port": "9092"}


def test_a_later_assignment_wins() -> None:
    given = SettingTexts()

    given.add_assignments(["a=1", "b = x=y ", "a=2"])

    assert given.texts == {"a": "2", "b": "x=y"}
    assert given.sources == {"a": "--set", "b": "--set"}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_word_without_key_or_equals_sign_is_refused(word: str) -> None:
    with pytest.raises(InvalidSetting, match=r"--set .*write key=value"):
        SettingTexts().add_assignments([word])
