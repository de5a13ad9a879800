"""Consumer of assigned partitions: no group, no thread; `poll` alone drives it.

with Consumer(bootstrap_servers="localhost:9092") as consumer:
    consumer.assign([("orders", 0)])
    consumer.seek_to_beginning()
    for group in consumer.poll(timeout=1.0):
        for record in group.records:
            print(group.topic, group.partition, record.offset, record.value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from tarry.client.core.consumer import ConsumerCore, RecordGroup
from tarry.client.core.lookup import EARLIEST, LATEST, FoundOffset, OffsetQuery
from tarry.client.core.position import PartitionPosition
from tarry.client.errors import ClientError, TimedOut
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.client.sync.driver import Driver, monotonic_ms, system_random
from tarry.client.sync.exclusive import Exclusive

Place = tuple[str, int]


class Consumer:
    """For one thread at a time."""

    def __init__(
        self, settings: Mapping[str, SettingValue] | None = None, **arguments: SettingValue
    ) -> None:
        self.settings = ConsumerSettings(settings, **arguments)
        self._core = ConsumerCore(self.settings, system_random(), monotonic_ms())
        self._driver = Driver(self._core, self.settings)
        self._exclusive = Exclusive("a Consumer")

    # --- What is read

    def partitions_of(self, topic: str, timeout: float | None = None) -> list[int]:
        """The partitions of a topic, in order; waits for metadata.  Raises UnknownTopic."""
        core = self._core

        def is_settled() -> bool:
            missing = core.metadata.is_missing(topic, core.now_ms)
            return missing or core.metadata.topic(topic) is not None

        with self._entered():
            core.track(topic)
            self._wait(is_settled, timeout)
        known = core.metadata.topic(topic)
        if known is not None:
            return list(known.partitions)
        reason = core.refresh.last_error
        if reason is not None:
            raise TimedOut(f"no broker told about topic {topic}: {reason}")
        raise core.metadata.error_of(topic, core.now_ms)

    def assign(self, places: Iterable[Place]) -> None:
        """Read these partitions, and no others: those that were read already go on, others begin
        where seek says, or as `auto.offset.reset` does."""
        with self._entered():
            self._core.assign(list(places))

    def seek(self, topic: str, partition: int, offset: int) -> None:
        with self._entered():
            self._core.seek((topic, partition), offset)

    def seek_to_beginning(self, places: Iterable[Place] | None = None) -> None:
        self._seek_all(places, EARLIEST)

    def seek_to_end(self, places: Iterable[Place] | None = None) -> None:
        self._seek_all(places, LATEST)

    def seek_to_time(self, timestamp: int, places: Iterable[Place] | None = None) -> None:
        """To the first record that is not older than `timestamp` (milliseconds), else the end."""
        self._seek_all(places, timestamp)

    def _seek_all(self, places: Iterable[Place] | None, timestamp: int) -> None:
        with self._entered():
            for place in list(self._core.fetcher.positions if places is None else places):
                self._core.seek_to(place, timestamp)

    def pause(self, places: Iterable[Place]) -> None:
        """Read nothing of these partitions; what was read ahead is dropped."""
        with self._entered():
            for place in places:
                self._core.pause(place)

    def resume(self, places: Iterable[Place]) -> None:
        with self._entered():
            for place in places:
                self._core.resume(place)

    def position(self, topic: str, partition: int) -> int:
        """The offset that is handed out next; -1 while it is being looked up."""
        return self._core.position((topic, partition)).position

    def lag(self, topic: str, partition: int) -> int:
        """Records up to the end as the last fetch saw it; -1 before the first."""
        return self._core.position((topic, partition)).lag

    def is_at_end(self, topic: str, partition: int) -> bool:
        """Whether the last fetch saw nothing past the position."""
        return self._core.position((topic, partition)).is_at_end

    # --- Offsets

    def beginning_offsets(
        self, places: Iterable[Place], timeout: float | None = None
    ) -> dict[Place, int]:
        return self._offsets(dict.fromkeys(places, EARLIEST), timeout)

    def end_offsets(
        self, places: Iterable[Place], timeout: float | None = None
    ) -> dict[Place, int]:
        return self._offsets(dict.fromkeys(places, LATEST), timeout)

    def offsets_for_times(
        self, times: Mapping[Place, int], timeout: float | None = None
    ) -> dict[Place, int]:
        """The first offset at or after each time; -1 where no record is that young."""
        return self._offsets(dict(times), timeout)

    def _offsets(self, wanted: dict[Place, int], timeout: float | None) -> dict[Place, int]:
        query = OffsetQuery(wanted)
        with self._entered():
            self._core.begin_query(query)
            is_done = self._wait(lambda: query.is_done, timeout)
            query.end(self._core.lookup)
        if not is_done:
            raise self._unanswered(query)
        found: dict[Place, int] = {}
        for place, answer in query.answers.items():
            if isinstance(answer, ClientError):
                raise answer
            assert isinstance(answer, FoundOffset)
            found[place] = answer.offset
        return found

    def _unanswered(self, query: OffsetQuery) -> ClientError:
        core = self._core
        for topic, partition in query.wanted:
            if core.metadata.leader_of(topic, partition) is None:
                return core.metadata.error_of(topic, core.now_ms, partition)
        return TimedOut("the leaders did not tell their offsets in time")

    # --- Records

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> list[RecordGroup]:
        """Records that have come, by partition; empty if none came in `timeout` seconds.

        Raises what stands in the way of a partition: an offset out of range, a corrupt batch.
        """
        core = self._core
        records_max = max_records or self.settings.poll_records_max
        deadline_ms = monotonic_ms() + int(timeout * 1000)
        with self._entered():
            while True:
                if not core.has_records:
                    left_ms = deadline_ms - monotonic_ms()
                    if not self._driver.wait(lambda: core.has_records, max(left_ms, 0)):
                        return []
                groups = core.take(records_max)
                # The next fetch leaves before these records are worked on.
                self._driver.nudge()
                if groups:
                    return groups

    @property
    def trouble(self) -> str:
        """Why the cluster cannot be reached at the moment; empty if nothing seems wrong."""
        return self._core.trouble

    def positions(self) -> list[PartitionPosition]:
        """Where each assigned partition stands."""
        return list(self._core.fetcher.positions.values())

    # --- The end

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """One thread at a time, with the time set for what the core is told."""
        with self._exclusive:
            self._driver.check_usable()
            self._core.now_ms = monotonic_ms()
            yield

    def _wait(self, is_done: Callable[[], bool], timeout: float | None) -> bool:
        timeout_ms = self.settings.api_timeout_ms if timeout is None else int(timeout * 1000)
        return self._driver.wait(is_done, timeout_ms)

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
