"""What `tarry consume` does: from where to where it reads, and what it prints."""

from __future__ import annotations

import time
from typing import IO, Final, NamedTuple

from tarry.base.errors import TarryError
from tarry.cli.formats import PlainRenderer, Renderer
from tarry.cli.places import OFFSET, TIME, Place
from tarry.cli.rendering import rendered
from tarry.cli.trouble import Trouble
from tarry.client.core.consumer import RecordGroup
from tarry.client.sync.consumer import Consumer
from tarry.records.record import Record

# One poll's wait; Ctrl-C and the end of the patience are looked at in between.
POLL_SECONDS: Final = 0.5
POLL_RECORDS_MAX: Final = 10_000

At = tuple[str, int]


class NotThere(TarryError):
    """A partition or an offset that the topic does not have."""


class Limits(NamedTuple):
    """Where reading ends; `follow` means: not at the end of the partitions."""

    count_max: int | None = None
    until_ms: int | None = None
    follow: bool = False


class Reading:
    """One run of `consume` over the partitions of a topic."""

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        renderer: Renderer | PlainRenderer,
        output: IO[bytes],
        timeout: float,
    ) -> None:
        self.consumer = consumer
        self.topic = topic
        self.renderer = renderer
        self.output = output
        self.timeout = timeout
        self.places: list[At] = []
        self.printed = 0
        self._trouble = Trouble()
        # The offset at which a partition is done; without one it goes on for ever.
        self._bounds: dict[At, int] = {}
        self._begins: dict[At, int] = {}
        self._ends: dict[At, int] = {}

    # --- From where

    def choose(self, partitions: list[int] | None) -> None:
        """The partitions to read; all of them if none are named."""
        known = self.consumer.partitions_of(self.topic, self.timeout)
        for partition in partitions or ():
            if partition not in known:
                raise NotThere(
                    f"topic {self.topic} has partitions 0 to {known[-1]}, not {partition}"
                )
        self.places = [(self.topic, partition) for partition in partitions or known]

    def begin(self, start: Place, single: dict[int, Place]) -> None:
        """Look up where to begin, and begin."""
        if single:
            known = [partition for _, partition in self.places]
            for partition in single:
                if partition not in known:
                    raise NotThere(f"partition {partition} is not read, but has an offset")
            self.places = [place for place in self.places if place[1] in single]
        self._begins = self.consumer.beginning_offsets(self.places, self.timeout)
        self._ends = self.consumer.end_offsets(self.places, self.timeout)
        starts = {place: single.get(place[1], start) for place in self.places}
        times = {place: one.number for place, one in starts.items() if one.kind == TIME}
        found = self.consumer.offsets_for_times(times, self.timeout) if times else {}
        self.consumer.assign(self.places)
        for place, one in starts.items():
            self.consumer.seek(*place, self._offset_of(place, one, found))

    def _offset_of(self, place: At, start: Place, found: dict[At, int]) -> int:
        begin, end = self._begins[place], self._ends[place]
        if start.kind == OFFSET and not begin <= start.number <= end:
            raise NotThere(
                f"{place[0]} [{place[1]}] has offsets {begin} to {end}, not {start.number}"
            )
        return start.offset(begin, end, found.get(place, -1))

    # --- To where

    def run(self, limits: Limits) -> None:
        """Print records until the limits are reached."""
        self._set_bounds(limits)
        open_places = self._close_done(list(self.places))
        patience_ends = time.monotonic() + self.timeout
        while open_places and (limits.count_max is None or self.printed < limits.count_max):
            groups = self.consumer.poll(POLL_SECONDS, POLL_RECORDS_MAX)
            for group in groups:
                self._print(group, limits.count_max)
            if groups:
                self.output.flush()
            before = len(open_places)
            open_places = self._close_done(open_places)
            if groups or len(open_places) < before or limits.follow:
                patience_ends = time.monotonic() + self.timeout
            elif time.monotonic() > patience_ends:
                raise NotThere(self._stuck(open_places))
            self._trouble.look(self.consumer.trouble)

    def _set_bounds(self, limits: Limits) -> None:
        if not limits.follow:
            self._bounds = dict(self._ends)
        if limits.until_ms is not None:
            times = dict.fromkeys(self.places, limits.until_ms)
            for place, offset in self.consumer.offsets_for_times(times, self.timeout).items():
                if offset >= 0:
                    self._bounds[place] = offset

    def _close_done(self, places: list[At]) -> list[At]:
        """Stop reading the partitions that are done; those that are left."""
        done = [
            place
            for place in places
            if place in self._bounds and self.consumer.position(*place) >= self._bounds[place]
        ]
        self.consumer.pause(done)
        return [place for place in places if place not in done]

    def _stuck(self, places: list[At]) -> str:
        topic, partition = places[0]
        position = self.consumer.position(topic, partition)
        bound = self._bounds.get(places[0], -1)
        return (
            f"no record came for {self.timeout:g} s, although {topic} [{partition}] is at offset "
            f"{position} of {bound}"
        )

    # --- Out

    def _print(self, group: RecordGroup, count_max: int | None) -> None:
        bound = self._bounds.get((group.topic, group.partition))
        left = None if count_max is None else count_max - self.printed
        records = wanted_records(group.records, bound, left)
        if not records:
            return
        data = rendered(self.renderer, group.topic, group.partition, records)
        self.output.write(data)
        self.printed += len(records)


def wanted_records(records: list[Record], bound: int | None, count_max: int | None) -> list[Record]:
    """Those below the offset `bound`, and of them so many."""
    if bound is not None and records[-1].offset >= bound:
        records = [record for record in records if record.offset < bound]
    return records if count_max is None else records[:count_max]
