"""Reading for `tarry consume`: from where to where, and what it prints."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import IO, Final, NamedTuple, cast

from tarry.base.errors import TarryError
from tarry.base.ids import TopicPartition
from tarry.cli.formats import PlainRenderer, Renderer
from tarry.cli.places import OFFSET, TIME, Place
from tarry.cli.ranges import Ranges
from tarry.cli.rendering import Unprintable, rendered
from tarry.cli.search import Search
from tarry.cli.status_line import StatusLine
from tarry.cli.tables import count_of
from tarry.cli.trouble import Trouble
from tarry.client import Consumer, RecordGroup, TypedRecord
from tarry.records.record import Record

# Time-out of one poll: Ctrl-C and the limit of time are checked between polls.
POLL_SECONDS: Final = 0.5
POLL_RECORDS_MAX: Final = 10_000

# Time after which progress is shown: a shorter command shows none.
PROGRESS_SECONDS: Final = 1.0


class NotThere(TarryError):
    """A partition or an offset that the topic does not have."""


class Limits(NamedTuple):
    """Limits of a reading; `follow` means: do not end at the end of the partitions."""

    count_max: int | None = None
    until_ms: int | None = None
    follow: bool = False


class Output(NamedTuple):
    """Output of records: where they go, as what, and which of them."""

    stream: IO[bytes]
    renderer: Renderer | PlainRenderer
    search: Search | None = None
    # Bytes that are written before the first record, such as the header row of CSV.
    head: bytes = b""


class Reading:
    """Run of `consume` over the partitions of some topics."""

    def __init__(
        self, consumer: Consumer, topics: list[str], output: Output, timeout: float
    ) -> None:
        self.consumer = consumer
        self.topics = topics
        self.output = output
        self.timeout = timeout
        self.places: list[TopicPartition] = []
        self.printed = 0
        self.seen = 0
        self._trouble = Trouble()
        self._progress = ReadingProgress(output)
        # Offset at which a partition is done; a partition without one is read without end.
        self._bounds: dict[TopicPartition, int] = {}
        self._begins: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        # Time at which reading with `follow` stops; None without one, or when it has come.
        self._until_ms: int | None = None
        # End offsets that the user gave.
        self._own_ends: dict[TopicPartition, int] = {}

    # --- From where

    def choose(self, partitions: list[int] | None) -> None:
        """Choose the partitions to read; all of them if none are named."""
        for topic in self.topics:
            known = self.consumer.partitions_of(topic, self.timeout)
            for partition in partitions or ():
                if partition not in known:
                    raise NotThere(
                        f"topic {topic!r} has partitions 0 to {known[-1]}, not {partition}"
                    )
            self.places += [(topic, partition) for partition in partitions or known]

    def begin(self, ranges: Ranges) -> None:
        """Look up where to begin and to end, and begin."""
        single = ranges.single
        if single:
            known = [partition for _, partition in self.places]
            for partition in single:
                if partition not in known:
                    raise NotThere(f"partition {partition} is not read, but has an offset")
            self.places = [place for place in self.places if place[1] in single]
        self._begins = self.consumer.beginning_offsets(self.places, self.timeout)
        self._ends = self.consumer.end_offsets(self.places, self.timeout)
        wanted = {place: single.get(place[1], ranges.common) for place in self.places}
        starts = self._offsets({place: one.start for place, one in wanted.items()})
        self._own_ends = self._offsets(
            {place: one.end for place, one in wanted.items() if one.end is not None}
        )
        for place, start in starts.items():
            begin, end = self._begins[place], self._ends[place]
            if wanted[place].start.kind == OFFSET and not begin <= start <= end:
                raise NotThere(f"{place[0]} [{place[1]}] has offsets {begin} to {end}, not {start}")
        self.consumer.assign(self.places)
        for place, start in starts.items():
            self.consumer.seek(place, start)
        self._begins = starts

    def _offsets(self, wanted: dict[TopicPartition, Place]) -> dict[TopicPartition, int]:
        times = {place: one.number for place, one in wanted.items() if one.kind == TIME}
        found = self.consumer.offsets_for_times(times, self.timeout) if times else {}
        return {
            place: one.offset(self._begins[place], self._ends[place], found.get(place, -1))
            for place, one in wanted.items()
        }

    # --- To where

    def run(self, limits: Limits) -> None:
        """Print records until the limits are reached."""
        self._set_bounds(limits)
        self.output.stream.write(self.output.head)
        open_places = self._close_done(list(self.places))
        patience_ends = time.monotonic() + self.timeout
        try:
            while open_places and (limits.count_max is None or self.printed < limits.count_max):
                # Read the clock before the poll: the poll gets all records written before that.
                is_time_over = self._is_time_over()
                groups = self.consumer.poll(POLL_SECONDS, POLL_RECORDS_MAX)
                for group in groups:
                    self._print(group, limits.count_max)
                if is_time_over:
                    self._end_at_time()
                if groups:
                    self.output.stream.flush()
                before = len(open_places)
                open_places = self._close_done(open_places)
                if groups or len(open_places) < before or limits.follow:
                    patience_ends = time.monotonic() + self.timeout
                elif time.monotonic() > patience_ends:
                    raise NotThere(self._stuck(open_places))
                self._look()
        finally:
            self._progress.clear()

    def _look(self) -> None:
        """Report trouble if there is any; otherwise show the progress."""
        trouble = self.consumer.trouble
        if trouble:
            self._progress.clear()
        self._trouble.look(trouble)
        if not trouble:
            self._progress.show(self.seen, self.printed, self._share)

    def _share(self) -> float | None:
        """Return the share of the records that is read by now; None if there is no end."""
        if len(self._bounds) < len(self.places):
            return None
        whole = sum(max(self._bounds[place] - self._begins[place], 0) for place in self.places)
        done = sum(
            max(min(self.consumer.position(place), self._bounds[place]) - self._begins[place], 0)
            for place in self.places
        )
        return done / whole if whole else None

    def _set_bounds(self, limits: Limits) -> None:
        if not limits.follow:
            self._bounds = dict(self._ends)
        for place, offset in self._own_ends.items():
            # Without `follow`, reading stops at the present end, even if a later one was given.
            self._bounds[place] = min(offset, self._bounds.get(place, offset))
        if limits.until_ms is not None:
            self._until_ms = limits.until_ms
            times = dict.fromkeys(self.places, limits.until_ms)
            for place, offset in self.consumer.offsets_for_times(times, self.timeout).items():
                if offset >= 0:
                    self._bounds[place] = offset

    def _is_time_over(self) -> bool:
        return self._until_ms is not None and time.time() * 1000 >= self._until_ms

    def _end_at_time(self) -> None:
        """Set the ends to the first offsets of the given time, which has come now."""
        assert self._until_ms is not None
        left = [place for place in self.places if place not in self._bounds]
        times = dict.fromkeys(left, self._until_ms)
        self._until_ms = None
        if not left:
            return
        ends = self.consumer.end_offsets(left, self.timeout)
        for place, offset in self.consumer.offsets_for_times(times, self.timeout).items():
            self._bounds[place] = offset if offset >= 0 else ends[place]

    def _close_done(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Stop reading the partitions that are done; those that are left."""
        done = [
            place
            for place in places
            if place in self._bounds and self.consumer.position(place) >= self._bounds[place]
        ]
        self.consumer.pause(done)
        return [place for place in places if place not in done]

    def _stuck(self, places: list[TopicPartition]) -> str:
        topic, partition = places[0]
        position = self.consumer.position(places[0])
        bound = self._bounds.get(places[0], -1)
        trouble = self.consumer.trouble
        because = f": {trouble}" if trouble else ""
        return (
            f"no record came for {self.timeout:g} s, although {topic} [{partition}] is at offset "
            f"{position} of {bound}{because}"
        )

    # --- Out

    def _print(self, group: RecordGroup, count_max: int | None) -> None:
        place = (group.topic, group.partition)
        bound = self._bounds.get(place)
        if bound is None and self._until_ms is not None:
            late = (one.offset for one in group if one.timestamp >= self._until_ms)
            bound = next(late, None)
            if bound is not None:
                self._bounds[place] = bound
        left = None if count_max is None else count_max - self.printed
        chosen = chosen_records(group.records, bound, left, self.output.search)
        self.seen += chosen.seen
        if not chosen.records:
            return
        self._progress.clear()
        renderer = self.output.renderer
        try:
            data = rendered(renderer, group.topic, group.partition, chosen.records)
        except Unprintable as error:
            self.output.stream.write(error.before)
            raise
        self.output.stream.write(data)
        self.printed += len(chosen.records)


class ReadingProgress:
    """The line about how far a long reading has come, where the records do not go to the same
    terminal, or where few of them do."""

    def __init__(self, output: Output) -> None:
        self._is_search = output.search is not None
        is_wanted = self._is_search or not sys.stdout.isatty()
        self._line = StatusLine() if is_wanted else None
        self._started = time.monotonic()

    def show(self, seen: int, printed: int, share: Callable[[], float | None]) -> None:
        line = self._line
        if line is None or not line.is_live or not seen:
            return
        elapsed = time.monotonic() - self._started
        if elapsed < PROGRESS_SECONDS:
            return
        text = count_of(seen, "record")
        if self._is_search:
            text = f"{text} searched, {printed:,} found"
        part = share()
        if part is not None:
            text = f"{text}, {part:.0%}"
        line.show(f"{text}, {seen / elapsed:,.0f} records/s")

    def clear(self) -> None:
        if self._line is not None:
            self._line.clear()


class Chosen(NamedTuple):
    """Records to print, how many were looked at, and the offset behind the last of these."""

    records: list[Record]
    seen: int
    next_offset: int


def chosen_records(
    taken: Sequence[TypedRecord[bytes, bytes]],
    bound: int | None,
    count_max: int | None,
    search: Search | None,
) -> Chosen:
    """Choose records below the offset `bound` in which the search finds something, so many at
    most.
    """
    # A consumer without codecs returns records of bytes.
    records = cast("list[Record]", taken)
    if bound is not None and records[-1].offset >= bound:
        records = [record for record in records if record.offset < bound]
    if not records or count_max == 0:
        return Chosen([], 0, -1)
    found = records if search is None else search.found(records)
    if count_max is None or len(found) < count_max:
        return Chosen(found, len(records), records[-1].offset + 1)
    found = found[:count_max]
    # Records behind the last printed one are left to the next run.
    next_offset = found[-1].offset + 1
    return Chosen(found, sum(record.offset < next_offset for record in records), next_offset)
