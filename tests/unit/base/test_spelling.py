"""The known word that looks most like a mistaken one."""

from __future__ import annotations

import pytest

from tarry.base.spelling import LETTERS_MAX, Spelling

WORDS = ["cleanup.policy", "retention.bytes", "retention.ms", "segment.bytes", "segment.ms"]


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("retention.ms", "retention.ms"),
        ("retnetion.ms", "retention.ms"),
        ("retention", "retention.ms"),
        ("segmentbytes", "segment.bytes"),
        ("policy.cleanup", "cleanup.policy"),
        ("RETENTION.bytes", "retention.bytes"),
    ],
)
def test_a_mistaken_word_is_near_to_the_one_that_was_meant(word: str, nearest: str) -> None:
    assert Spelling(WORDS).near(word) == nearest


@pytest.mark.parametrize("word", ["", "ß", "9" * 50, "policy", "database.url"])
def test_a_word_with_too_little_in_common_is_near_to_none(word: str) -> None:
    assert Spelling(WORDS).near(word) == ""


def test_of_a_long_word_the_beginning_counts() -> None:
    word = "segment.bytes" + "retention.ms" * 100_000

    assert Spelling(WORDS).near(word[:LETTERS_MAX]) == Spelling(WORDS).near(word)


def test_a_word_with_a_part_of_its_own_is_no_slip_of_the_finger() -> None:
    known = Spelling(["group.consumer.heartbeat.interval.ms", "group.consumer.max.size"])

    assert known.near("group.consumer.assignment.interval.ms") == ""
    assert known.near("group.consumer.hearbeat.interval.ms") == (
        "group.consumer.heartbeat.interval.ms"
    )
