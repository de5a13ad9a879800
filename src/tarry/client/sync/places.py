"""Places: what a consumer reads and from where, whoever decided it.

The part of a consumer that needs no group: metadata, seeking, pausing, offsets looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from random import SystemRandom

from tarry.client.core.arguments import check_offset, place_of, places_of
from tarry.client.core.consumer.lookup import EARLIEST, LATEST
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.operation import Answer
from tarry.client.core.outgoing import check_timestamp, check_topic
from tarry.client.settings import ConsumerSettings
from tarry.client.sync.clock import monotonic_ms
from tarry.client.sync.driver import Begin, Driver, Tell
from tarry.client.sync.exclusive import Exclusive

Place = tuple[str, int]


class PlacesReader:
    """To be subclassed by `Consumer`, which polls."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.settings = settings
        self._driver = Driver(
            settings,
            lambda driver: GroupConsumerCore(settings, SystemRandom(), monotonic_ms()),
            "tarry-keeper",
        )
        self._core = self._driver.core
        self._exclusive = Exclusive("a Consumer")
        # Told again and again while a question to the cluster waits.
        self.on_wait: Tell | None = None

    # --- What is read

    def partitions_of(self, topic: str, timeout: float | None = None) -> list[int]:
        """The partitions of a topic, in order; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        return self._wait_for(partial(self._core.begin_topic_query, topic), timeout)

    def assign(self, places: Iterable[Place]) -> None:
        """Read these partitions, and no others: those that were read already go on, others begin
        where seek says, or as `auto.offset.reset` does."""
        wanted = places_of("assign", places)
        with self._told() as core:
            core.assign(wanted)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Hand out the record at this offset next; NotSubscribed for what is not read."""
        place = place_of("seek", (topic, partition))
        check_offset("seek", offset)
        with self._told() as core:
            core.seek(place, offset)

    def seek_to_beginning(self, places: Iterable[Place] | None = None) -> None:
        self._seek_all(places, EARLIEST)

    def seek_to_end(self, places: Iterable[Place] | None = None) -> None:
        self._seek_all(places, LATEST)

    def seek_to_time(self, timestamp: int, places: Iterable[Place] | None = None) -> None:
        """To the first record that is not older than `timestamp` (milliseconds), else the end."""
        check_timestamp(timestamp)
        self._seek_all(places, timestamp)

    def _seek_all(self, places: Iterable[Place] | None, timestamp: int) -> None:
        wanted = None if places is None else places_of("seek", places)
        with self._told() as core:
            moved = list(core.fetcher.positions) if wanted is None else wanted
            core.check_read(moved)
            for place in moved:
                core.seek_to(place, timestamp)

    def pause(self, places: Iterable[Place]) -> None:
        """Read nothing of these partitions; what was read ahead is dropped."""
        wanted = places_of("pause", places)
        with self._told() as core:
            core.check_read(wanted)
            for place in wanted:
                core.pause(place)

    def resume(self, places: Iterable[Place]) -> None:
        """Read paused partitions again."""
        wanted = places_of("resume", places)
        with self._told() as core:
            core.check_read(wanted)
            for place in wanted:
                core.resume(place)

    def position(self, topic: str, partition: int) -> int:
        """The offset that is handed out next; -1 while it is being looked up."""
        with self._told() as core:
            return core.position((topic, partition)).position

    def lag(self, topic: str, partition: int) -> int:
        """Records up to the end as the last fetch saw it; -1 before the first."""
        with self._told() as core:
            return core.position((topic, partition)).lag

    def is_at_end(self, topic: str, partition: int) -> bool:
        """Whether the last fetch saw nothing past the position."""
        with self._told() as core:
            return core.position((topic, partition)).is_at_end

    # --- Offsets

    def beginning_offsets(
        self, places: Iterable[Place], timeout: float | None = None
    ) -> dict[Place, int]:
        return self._offsets(
            dict.fromkeys(places_of("beginning_offsets", places), EARLIEST), timeout
        )

    def end_offsets(
        self, places: Iterable[Place], timeout: float | None = None
    ) -> dict[Place, int]:
        return self._offsets(dict.fromkeys(places_of("end_offsets", places), LATEST), timeout)

    def offsets_for_times(
        self, times: Mapping[Place, int], timeout: float | None = None
    ) -> dict[Place, int]:
        """The first offset at or after each time; -1 where no record is that young."""
        if not isinstance(times, Mapping):
            raise TypeError(
                f'offsets_for_times takes times such as {{("orders", 0): 0}}, not {times!r:.60}'
            )
        for timestamp in times.values():
            check_timestamp(timestamp)
        places_of("offsets_for_times", times)
        return self._offsets(dict(times), timeout)

    def _offsets(self, wanted: dict[Place, int], timeout: float | None) -> dict[Place, int]:
        return self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    @property
    def trouble(self) -> str:
        """Why the cluster cannot be reached at the moment; empty if nothing seems wrong."""
        return self._core.trouble(monotonic_ms())

    def positions(self) -> list[PartitionPosition]:
        """Where each assigned partition stands."""
        return list(self._core.fetcher.positions.values())

    # --- Waiting

    @contextmanager
    def _told(self) -> Iterator[GroupConsumerCore]:
        """The core, to be told or asked something: by one thread at a time, while nobody turns it;
        what an iteration did not yield is back."""
        with self._exclusive:
            self._driver.check_usable()
            with self._driver.lock:
                self._core.take_back()
                yield self._core

    def _wait_for(self, begin: Begin[Answer], timeout: float | None) -> Answer:
        limit_ms = self.settings.api_timeout_ms
        with self._exclusive:
            return self._driver.perform(begin, timeout, limit_ms, tell=self.on_wait)
