"""Partitions in few words, as the options take them: `orders:0-2,5`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tarry.base.ids import TopicPartition


def places_text(places: Iterable[TopicPartition]) -> str:
    """`orders:0-2,5 refunds:0`; empty for none."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        topics.setdefault(topic, []).append(partition)
    return " ".join(f"{topic}:{ranges_text(indexes)}" for topic, indexes in topics.items())


def ranges_text(numbers: Sequence[int]) -> str:
    """`0-2,5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)
