"""Bounds: where reading begins or ends, as Spark's options say it; and topics that are chosen.

All is pure: what a bound is in offsets is found in `resolve`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.spark.options import INT64_MAX, OptionRefused, whole_number

# Kinds of bounds.
AT_EARLIEST: Final = "earliest"
AT_LATEST: Final = "latest"
AT_OFFSETS: Final = "offsets"
AT_TIMES: Final = "times"
AT_TIME: Final = "time"

# In place of an offset.
LATEST_OFFSET: Final = -1
EARLIEST_OFFSET: Final = -2

# Where progress and checkpoint keep the id of a topic, beside its partitions.
ID_KEY: Final = "id"
# Where they keep the leader epochs of the log before each offset.
EPOCHS_KEY: Final = "epochs"

OFFSETS_EXAMPLE: Final = '{"orders": {"0": 23, "1": -1}, "payments": {"0": -2}}'
PLACES_EXAMPLE: Final = '{"orders": [0, 1], "payments": [0]}'


@dataclass(frozen=True)
class Bound:
    """Start or end of what is read."""

    kind: str
    # Offsets or times (in milliseconds) by partition, for AT_OFFSETS and AT_TIMES.
    numbers: Mapping[TopicPartition, int] = field(default_factory=dict)
    time_ms: int = 0


@dataclass(frozen=True)
class TopicChoice:
    """Topics that are read: partitions by topic, or names, or a pattern; one of them is given."""

    assigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    pattern: str = ""

    def takes(self, topic: str, partition: int | None = None) -> bool:
        """Tell whether a topic of this name is read, and this partition of it if it is there."""
        if self.pattern:
            # As Spark's own source has it: a part of the name is enough.
            return re.search(self.pattern, topic) is not None
        if topic in self.assigned:
            return partition is None or partition in self.assigned[topic]
        return topic in self.names


def parse_bound(name: str, text: str) -> Bound:
    """Parse `earliest`, `latest` or offsets by partition in JSON."""
    word = text.strip().lower()
    if word in (AT_EARLIEST, AT_LATEST):
        return Bound(word)
    return Bound(AT_OFFSETS, parse_numbers(name, text, least=EARLIEST_OFFSET))


def parse_times(name: str, text: str) -> Bound:
    """Parse times by partition in JSON."""
    return Bound(AT_TIMES, parse_numbers(name, text, least=0))


def parse_time(name: str, text: str) -> Bound:
    """Parse one time for all partitions, in milliseconds."""
    time_ms = whole_number(text)
    if time_ms is None or not 0 <= time_ms <= INT64_MAX:
        raise OptionRefused(f"{name}={text!r:.60} is no time in milliseconds since 1970")
    return Bound(AT_TIME, time_ms=time_ms)


def parse_numbers(name: str, text: str, least: int) -> dict[TopicPartition, int]:
    """Parse numbers by topic and partition; ids of topics and leader epochs beside them are passed
    over."""
    refused = OptionRefused(f"{name}={text!r:.200} is not of the form {OFFSETS_EXAMPLE}")
    numbers: dict[TopicPartition, int] = {}
    for topic, by_partition in _parsed_object(text, refused).items():
        if not isinstance(by_partition, dict):
            raise refused
        for partition, number in by_partition.items():
            if partition in (ID_KEY, EPOCHS_KEY):
                continue
            index = whole_number(partition)
            if index is None or index < 0 or type(number) is not int:
                raise refused
            if not least <= number <= INT64_MAX:
                raise refused
            numbers[topic, index] = number
    return dict(sorted(numbers.items()))


def parse_assigned(name: str, text: str) -> dict[str, tuple[int, ...]]:
    """Parse partitions by topic."""
    refused = OptionRefused(f"{name}={text!r:.200} is not of the form {PLACES_EXAMPLE}")
    assigned: dict[str, tuple[int, ...]] = {}
    for topic, partitions in sorted(_parsed_object(text, refused).items()):
        if not isinstance(partitions, list) or not partitions:
            raise refused
        if any(type(one) is not int or one < 0 for one in partitions):
            raise refused
        assigned[topic] = tuple(sorted(dict.fromkeys(partitions)))
    if not assigned:
        raise refused
    return assigned


def _parsed_object(text: str, refused: OptionRefused) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise refused from None
    if not isinstance(parsed, dict):
        raise refused
    return parsed
