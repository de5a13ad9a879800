"""Places: what a consumer reads and from where, whoever decided it.

The part of a consumer that needs no group: metadata, seeking, pausing, offsets looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from tarry.client.core.arguments import check_offset, place_of, places_of
from tarry.client.core.consumer.lookup import EARLIEST, LATEST, FoundOffset, OffsetQuery
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.outgoing import check_timestamp, check_topic
from tarry.client.settings import ConsumerSettings
from tarry.client.sync.driver import Driver, Tell, monotonic_ms, system_random, wait_telling
from tarry.client.sync.exclusive import Exclusive
from tarry.client.sync.handed_out import HandedOut
from tarry.link.errors import ClientError, timed_out

Place = tuple[str, int]


class PlacesReader:
    """To be subclassed by `Consumer`, which polls."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.settings = settings
        self._core = GroupConsumerCore(settings, system_random(), monotonic_ms())
        self._driver = Driver(self._core, settings)
        self._exclusive = Exclusive("a Consumer")
        # Told again and again while a question to the cluster waits.
        self.on_wait: Tell | None = None
        # What an iteration has not yielded yet.
        self._handed_out: HandedOut | None = None

    # --- What is read

    def partitions_of(self, topic: str, timeout: float | None = None) -> list[int]:
        """The partitions of a topic, in order; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        core = self._core

        def is_settled() -> bool:
            missing = core.metadata.is_missing(topic, core.now_ms)
            return missing or core.metadata.topic(topic) is not None

        with self._told():
            core.track(topic)
        with self._entered():
            self._wait(is_settled, timeout)
        known = core.metadata.topic(topic)
        if known is not None:
            return list(known.partitions)
        reason = core.refresh.last_error
        if reason is not None:
            waited_ms = self._timeout_ms(timeout)
            raise timed_out(f"no broker described topic {topic!r}", waited_ms, reason)
        raise core.metadata.error_of(topic, core.now_ms)

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
        query = OffsetQuery(wanted)
        with self._told() as core:
            core.begin_query(query)
        with self._entered():
            is_done = self._wait(lambda: query.is_done, timeout)
        with self._driver.lock:
            query.end(self._core.lookup)
        if not is_done:
            raise self._unanswered(query, self._timeout_ms(timeout))
        found: dict[Place, int] = {}
        for place, answer in query.answers.items():
            if isinstance(answer, ClientError):
                raise answer
            assert isinstance(answer, FoundOffset)
            found[place] = answer.offset
        return found

    def _unanswered(self, query: OffsetQuery, waited_ms: int) -> ClientError:
        core = self._core
        for topic, partition in query.wanted:
            leader = core.metadata.leader_of(topic, partition)
            if leader is None:
                reason = core.refresh.last_error
                if reason is not None:
                    return timed_out(f"no broker described topic {topic!r}", waited_ms, reason)
                return core.metadata.error_of(topic, core.now_ms, partition)
            failure = core.connections.failure_of(leader.leader_id)
            if (topic, partition) not in query.answers and failure is not None:
                return timed_out("the leader told no offset", waited_ms, failure)
        return timed_out("the leaders did not tell their offsets", waited_ms, None)

    @property
    def trouble(self) -> str:
        """Why the cluster cannot be reached at the moment; empty if nothing seems wrong."""
        return self._core.trouble

    def positions(self) -> list[PartitionPosition]:
        """Where each assigned partition stands."""
        return list(self._core.fetcher.positions.values())

    # --- For those who poll

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """One thread at a time."""
        with self._exclusive:
            self._driver.check_usable()
            yield

    @contextmanager
    def _told(self) -> Iterator[GroupConsumerCore]:
        """The core, to be told something: nobody turns it meanwhile, its time is right, and what
        an iteration did not yield is back."""
        with self._entered(), self._driver.lock:
            core = self._core
            core.now_ms = monotonic_ms()
            if self._handed_out is not None:
                self._handed_out.give_back(core)
                self._handed_out = None
            yield core

    def _timeout_ms(self, timeout: float | None) -> int:
        return self.settings.api_timeout_ms if timeout is None else int(timeout * 1000)

    def _wait(self, is_done: Callable[[], bool], timeout: float | None) -> bool:
        timeout_ms = self._timeout_ms(timeout)
        return wait_telling(self._driver, self._core, is_done, timeout_ms, self.on_wait)
