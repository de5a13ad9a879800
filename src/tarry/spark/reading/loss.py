"""Loss: what lies outside a log is found before anything is read, and told with its offsets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from tarry.base.ids import TopicPartition
from tarry.spark.reading.plan import ReadRange

log = logging.getLogger("tarry.spark")

# Ranges in one sentence; the rest is counted.
TOLD_MAX: Final = 10


class DataLost(Exception):
    """Records that a query was to read are not there."""


class LostOffsets(msgspec.Struct, frozen=True):
    """Offsets of one partition that cannot be read, from `first` to before `end`, and why; None:
    all that followed."""

    topic: str
    partition: int
    first: int
    end: int | None
    reason: str

    @property
    def count(self) -> int:
        """Count of offsets, as far as it is known."""
        return 0 if self.end is None else self.end - self.first

    def __str__(self) -> str:
        until = "on" if self.end is None else f"to {self.end}"
        return f"{self.topic} [{self.partition}] from offset {self.first} {until} ({self.reason})"


class LostRange(LostOffsets, frozen=True):
    """Loss as a query finds it."""

    # The query has read what lay there before it was lost; what lies there now is read as well.
    was_read: bool = False


def cut_at(parting: int) -> str:
    """Return why what was noted of a log is not in it any more."""
    return f"the log was cut at offset {parting}, and what follows there was written anew"


def within_cuts(
    ranges: Iterable[ReadRange], partings: Mapping[TopicPartition, int]
) -> tuple[list[ReadRange], list[LostRange]]:
    """Return what can be read of ranges whose logs were cut since they were planned, and what is
    lost of them: what was written anew there belongs to another micro-batch."""
    readable: list[ReadRange] = []
    lost: list[LostRange] = []
    for one in ranges:
        parting = partings.get((one.topic, one.partition))
        if parting is None or parting >= one.end:
            readable.append(one)
            continue
        first = max(one.first, parting)
        lost.append(LostRange(one.topic, one.partition, first, one.end, cut_at(parting)))
        readable.append(ReadRange(one.topic, one.partition, one.first, first))
    return readable, lost


def within_logs(
    ranges: Iterable[ReadRange],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> tuple[list[ReadRange], list[LostRange]]:
    """Return what can be read of these ranges, and what is lost of them."""
    readable: list[ReadRange] = []
    lost: list[LostRange] = []
    for one in ranges:
        place = one.topic, one.partition
        start, end = starts[place], ends[place]
        if one.first < min(start, one.end):
            gone = min(start, one.end)
            reason = f"the log starts at {start}"
            lost.append(LostRange(one.topic, one.partition, one.first, gone, reason))
        if one.end > max(end, one.first):
            there = max(end, one.first)
            reason = f"the log ends at {end}"
            lost.append(LostRange(one.topic, one.partition, there, one.end, reason))
        first = max(one.first, start)
        readable.append(ReadRange(one.topic, one.partition, first, max(first, min(one.end, end))))
    return readable, lost


# Of records that were read and are not in the log any more.
GONE_SINCE: Final = "read, and gone since; reading goes on at the first of these offsets"

# What a user of the data source can do.
GO_ON: Final = "Set failOnDataLoss=false to go on with what is there"


def lost_sentence(lost: list[LostRange], advice: str = GO_ON) -> str:
    """Tell what is lost, and what a user can do."""
    told = "; ".join(str(one) for one in lost[:TOLD_MAX])
    more = f"; and {len(lost) - TOLD_MAX} more" if len(lost) > TOLD_MAX else ""
    why = "They may have been deleted by retention, or the topic was made anew"
    if any(one.was_read for one in lost):
        why = (
            "An unclean leader took over, or a broker lost what it had not flushed. What the query "
            "made of records that are gone stays as it is"
        )
    return f"these records cannot be read: {told}{more}. {why}. {advice}"


def raise_or_tell(
    lost: list[LostRange],
    is_failure: bool,
    advice: str = GO_ON,
    left_out: str = "not read, because failOnDataLoss is false",
    file: str = "",
) -> None:
    """Raise what is lost, or log it where reading is to go on, and append it to a file if one is
    named."""
    if not lost:
        return
    if is_failure:
        raise DataLost(lost_sentence(lost, advice))
    for one in lost[:TOLD_MAX]:
        log.warning("%s: %s", GONE_SINCE if one.was_read else left_out, one)
    if len(lost) > TOLD_MAX:
        log.warning("%d more ranges were not read", len(lost) - TOLD_MAX)
    if file:
        note_lost(lost, file)


class LostLine(msgspec.Struct, frozen=True):
    """Line of a file of ranges that were left out."""

    # When it was found, an ISO time in UTC.
    at: str
    topic: str
    partition: int
    first: int
    # The one behind the last; None: all that followed.
    end: int | None
    reason: str


def note_lost(lost: Iterable[LostRange], path: str) -> None:
    """Append a line for each range; a file that does not take them is told, and ends nothing."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    lines = [LostLine(at, one.topic, one.partition, one.first, one.end, one.reason) for one in lost]
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        # Without a buffer: lines of others do not come between.
        with open(path, "ab", buffering=0) as file:
            file.write(data)
    except OSError as error:
        log.warning("%s does not take what was left out: %s", path, error.strerror)
