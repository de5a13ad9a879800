"""Scan: reads every offset of given ranges, or raises an error; without a group and without a
reset.

The beginnings and ends of the logs are looked up beside the first fetch, and no row is handed out
before they are known: a scan is refused if one of its ranges begins before its log or ends behind
it.  Offsets without records, after a compaction or in a transaction, are no error.
"""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.doors import Random
from tarry.base.ids import TopicPartition, id_text
from tarry.client.core.arguments import check_offset, place_of
from tarry.client.core.consumer.column_taker import ColumnTaker, RowRun
from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.core.consumer.lookup import EARLIEST, LATEST, Answer
from tarry.client.core.consumer.position import EPOCH_MAX, PartitionPosition
from tarry.client.core.operation import Done, Operation, Wait
from tarry.client.core.topic import ZERO_ID
from tarry.client.errors import OffsetOutOfRange, TopicRecreated
from tarry.client.offset_reset import RESET_NONE, parse_offset_reset
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError, timed_out

# First offset of a range, and the offset after its last one.
OffsetRange = tuple[int, int]


def ranges_of(ranges: object) -> dict[TopicPartition, OffsetRange]:
    """Return the ranges of offsets by partition, checked."""
    if not isinstance(ranges, Mapping):
        raise TypeError(f'scan takes ranges such as {{("orders", 0): (0, 42)}}, not {ranges!r:.60}')
    found: dict[TopicPartition, OffsetRange] = {}
    for place, one in ranges.items():
        if not isinstance(one, tuple) or len(one) != 2:
            raise TypeError(
                f"scan takes a first offset and the one behind the last, such as (0, 42), for "
                f"{place!r:.60}, not {one!r:.60}"
            )
        first, end = one
        check_offset("scan", first)
        check_offset("scan", end)
        if end < first:
            raise ValueError(f"scan: the range of {place!r:.60} ends at {end}, before {first}")
        found[place_of("scan", place)] = first, end
    return found


def scan_settings(settings: ConsumerSettings) -> ConsumerSettings:
    """Adapt the settings for a scan: read at the leaders only, and raise an error instead of a
    reset."""
    settings.offset_reset = parse_offset_reset(RESET_NONE)
    settings.fetch_bytes_min = 0
    settings.rack = ""
    settings.allow_auto_create_topics = False
    return settings


class ScanCore(ConsumerCore):
    """Core of one scan: reads each of its ranges to its end."""

    what_waits = "a scan waits"

    def __init__(
        self,
        settings: ConsumerSettings,
        random: Random,
        now_ms: int,
        ranges: dict[TopicPartition, OffsetRange],
        topic_ids: Mapping[str, str] | None = None,
        epochs: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        super().__init__(settings, random, now_ms)
        self._ranges = ranges
        self._topic_ids = topic_ids or {}
        self._first: dict[TopicPartition, Answer] = {}
        self._end: dict[TopicPartition, Answer] = {}
        self._is_checked = False
        self.assign(list(ranges))
        for place, (first, end) in ranges.items():
            position = self.position(place)
            position.seek(first)
            position.end_offset = end
            position.epoch_max = EPOCH_MAX if epochs is None else epochs.get(place, EPOCH_MAX)
            self.lookup.ask(place, EARLIEST, self._on_first)
            self.lookup.ask(place, LATEST, self._on_end)

    def _on_first(self, place: TopicPartition, answer: Answer, now_ms: int) -> None:
        self._first[place] = answer

    def _on_end(self, place: TopicPartition, answer: Answer, now_ms: int) -> None:
        self._end[place] = answer

    def begin_rows(self, taker: ColumnTaker, timeout_ms: int, now_ms: int) -> ScanStep:
        """Begin the operation that takes the next rows; it returns none after all ranges are
        read."""
        self.finish_handed_out()
        return self.operations.begin(ScanStep(self, taker), timeout_ms, now_ms)

    @property
    def is_complete(self) -> bool:
        """True if all rows of the ranges were taken."""
        positions = self.fetcher.positions.values()
        return self._is_checked and not any(map(self.is_open, positions))

    @staticmethod
    def is_open(position: PartitionPosition) -> bool:
        """Return true if a range still has rows to fetch or take, or an error to raise."""
        is_fetched = position.fetch_offset >= position.end_offset
        return position.error is not None or bool(position.buffered) or not is_fetched

    def can_step(self, now_ms: int) -> bool:
        """Return true if the next step returns rows, raises an error, or ends the scan."""
        if not self._is_checked:
            return self._are_ends_known() or self._missing_topic(now_ms) is not None
        return self.is_complete or self.has_records(now_ms)

    def _are_ends_known(self) -> bool:
        return len(self._first) == len(self._end) == len(self._ranges)

    def take_rows(self, taker: ColumnTaker, now_ms: int) -> list[RowRun]:
        """Take rows that have arrived; raise the error of a partition."""
        if not self._is_checked:
            if not self._are_ends_known():
                self._raise_news(now_ms)
                return []
            self._check_ranges()
        return self.take_columns(taker, now_ms)

    def _check_ranges(self) -> None:
        wrong: list[str] = []
        for topic, meant in self._topic_ids.items():
            found = self.metadata.topic_id(topic)
            if meant and found != ZERO_ID and id_text(found) != meant:
                raise TopicRecreated(
                    f"nothing was scanned: topic {topic} has the id {id_text(found)}, and the one "
                    f"with the id {meant} was deleted"
                )
        for place, (first, end) in self._ranges.items():
            log_start, log_end = self._first[place], self._end[place]
            for answer in (log_start, log_end):
                if isinstance(answer, ClientError):
                    raise answer
            assert not isinstance(log_start, ClientError)
            assert not isinstance(log_end, ClientError)
            if first < log_start.offset or end > log_end.offset:
                topic, partition = place
                wrong.append(
                    f"{topic} [{partition}] has the offsets {log_start.offset} to "
                    f"{log_end.offset}, not {first} to {end}"
                )
        if wrong:
            raise OffsetOutOfRange(f"nothing was scanned: {'; '.join(wrong)}")
        self._is_checked = True


class ScanStep(Operation[list[RowRun]]):
    """Operation that returns the next rows of a scan; an empty list at its end."""

    def __init__(self, core: ScanCore, taker: ColumnTaker) -> None:
        super().__init__(core.operations)
        self._core = core
        self._taker = taker

    def look(self, now_ms: int) -> bool:
        return self._core.can_step(now_ms)

    def step(self, now_ms: int) -> Done[list[RowRun]] | Wait:
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        runs = self._core.take_rows(self._taker, now_ms)
        if runs or self._core.is_complete:
            return Done(runs)
        if self.is_late:
            raise self.late_error(now_ms)
        return self.wait()

    def late_error(self, now_ms: int) -> ClientError:
        core = self._core
        for position in core.fetcher.positions.values():
            if not core.is_open(position):
                continue
            leader = core.metadata.leader_of(position.topic, position.partition)
            if leader is None:
                return core.topic_error(position.topic, self.timeout_ms, now_ms, position.partition)
            return timed_out(
                f"the leader of {position} gave nothing from offset {position.fetch_offset} on, "
                f"and {position.end_offset} is where the scan ends",
                self.timeout_ms,
                core.connections.failure_of(leader.leader_id),
            )
        return timed_out("the leaders did not give their offsets", self.timeout_ms, None)
