"""Units: bytes, counts and times with units, alike in every command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from tarry.cli import units
from tarry.cli.topics import topics


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1500", 1500), ("500ms", 500), ("30s", 30_000), ("1.5h", 5_400_000), ("2 d", 172_800_000)],
)
def test_a_time_takes_a_unit(text: str, ms: int) -> None:
    assert units.parse_time_length_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("10MB", 10_000_000),
        ("10mib", 10 * 1024 * 1024),
        ("1.5 kB", 1500),
        ("9007199254740993b", 9007199254740993),
        ("-1", -1),
    ],
)
def test_a_size_takes_a_unit_and_loses_no_byte(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1.5.2kB", "10 apples", "1.5", "٣", "nan", "1_000"])
def test_what_is_no_size_is_refused_with_what_can_be_written(text: str) -> None:
    with pytest.raises(units.BadUnit, match=r"invalid size .*: write 1000, 64kB, 10MB"):
        units.parse_size(text)


def test_a_count_takes_a_unit() -> None:
    assert units.parse_count("2M") == 2_000_000

    with pytest.raises(units.BadUnit, match="invalid number '2MB'"):
        units.parse_count("2MB")


@pytest.mark.parametrize(
    ("key", "given_text", "sent"),
    [
        ("retention.ms", "7d", "604800000"),
        ("segment.bytes", "1GB", "1000000000"),
        ("retention.ms", "-1", "-1"),
        # The broker says what is wrong with it.
        ("retention.ms", "soon", "soon"),
        ("cleanup.policy", "compact", "compact"),
    ],
)
def test_a_setting_is_sent_in_the_plain_numbers_that_brokers_take(
    key: str, given_text: str, sent: str
) -> None:
    assert units.setting_text(key, given_text) == sent


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (23_400, "23 kB"),
        (999_900, "1.0 MB"),
        (5 * 10**18, "5000 PB"),
    ],
)
def test_sizes_are_printed_in_few_letters(size: int, text: str) -> None:
    assert units.size_text(size) == text


@given(st.integers(0, 10**18))
def test_a_printed_size_can_be_read_again_and_is_near(size: int) -> None:
    again = units.parse_size(units.size_text(size))

    assert abs(again - size) <= size / 19


def test_wrong_times_of_an_option_are_wrong_usage() -> None:
    result = CliRunner().invoke(topics, ["list", "-m", "0s"])

    assert result.exit_code == 2
    assert "invalid time '0s': it must be more than 0 and at most a week" in result.stderr
