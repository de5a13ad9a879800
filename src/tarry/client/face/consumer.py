"""ConsumerFace: the calls of a consumer that do not wait, the same in every face.

They tell the core what to read, and ask it for its state.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import overload

from tarry.base.ids import TopicPartition
from tarry.client.core.arguments import place_given
from tarry.client.core.consumer.lookup import EARLIEST, LATEST
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.identity import GroupView
from tarry.client.core.outgoing import check_timestamp
from tarry.client.face.face import ClientFace
from tarry.client.face.iteration import GIVE_BACK_SECONDS, ITERATION_SECONDS
from tarry.client.metrics import ConsumerMetrics
from tarry.client.settings import ConsumerSettings


class ConsumerFace(ClientFace[GroupConsumerCore]):
    """Face to be subclassed; a subclass defines how its core may be accessed."""

    settings: ConsumerSettings

    def _told(self) -> AbstractContextManager[GroupConsumerCore]:
        """Yield the core for a call, while no thread or task turns it; records that an iteration
        has not yielded are taken back first."""
        raise NotImplementedError

    def _check_free(self) -> None:
        """Raise an error for a call that a codec or an assignor of this consumer makes while it
        runs."""
        self._core.check_not_decoding()
        self._core.check_not_assigning()

    # --- The group

    def unsubscribe(self) -> None:
        """Unsubscribe: the next poll gives all partitions back and leaves the group."""
        with self._told() as core:
            core.unsubscribe()

    def finish(self) -> None:
        """Mark all records that were handed out as finished, like the next poll.  Without it, the
        record in hand is not committed automatically when the consumer is closed."""
        with self._told() as core:
            core.finish_handed_out()

    def subscription(self) -> list[str]:
        """Return the subscribed topics; for a pattern, the topics that match it at present."""
        return list(self._core.topics.subscribed)

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        return list(self._core.fetcher.positions)

    @property
    def group(self) -> GroupView:
        """View of this member's state in its group."""
        self._check_free()
        with self._driver.lock:
            return self._core.view()

    def metrics(self) -> ConsumerMetrics:
        """Return a snapshot of counters and positions; cheap enough for every poll, and allowed
        while another call waits, in a synchronous consumer from any thread too."""
        self._check_free()
        with self._driver.lock:
            return self._core.metrics(self._driver.now_ms())

    # --- What is read, and from where

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Read these partitions, and no others.  Partitions that were read already keep their
        positions; others begin where seek says, or as `auto.offset.reset` says."""
        with self._told() as core:
            core.assign(places)

    @overload
    def seek(self, place: TopicPartition, offset: int, /) -> None: ...

    @overload
    def seek(self, topic: str, partition: int, offset: int, /) -> None: ...

    def seek(self, place: TopicPartition | str, *numbers: int) -> None:
        """Hand out the record at this offset of `("orders", 0)` next; raise NotSubscribed for a
        partition that is not assigned.  `seek("orders", 0, 42)` is the older form."""
        if not numbers:
            raise TypeError('seek takes a partition and an offset, such as seek(("orders", 0), 42)')
        with self._told() as core:
            core.seek(place_given("seek", place, numbers[:-1]), numbers[-1])

    def paused(self) -> list[TopicPartition]:
        """Return the partitions that are paused."""
        positions = self._core.fetcher.positions
        return [place for place, position in positions.items() if position.is_paused]

    def seek_to_beginning(self, places: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the first record of these partitions, or of all assigned ones."""
        with self._told() as core:
            core.seek_all(places, EARLIEST)

    def seek_to_end(self, places: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the end of these partitions, or of all assigned ones, to read only records that
        are written from now on."""
        with self._told() as core:
            core.seek_all(places, LATEST)

    def seek_to_time(self, timestamp: int, places: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the first record that is not older than `timestamp` (milliseconds since 1970), or
        to the end if there is none; in these partitions, or in all assigned ones."""
        check_timestamp(timestamp)
        with self._told() as core:
            core.seek_all(places, timestamp)

    def pause(self, places: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions; fetched records are dropped."""
        with self._told() as core:
            core.pause(places)

    def resume(self, places: Iterable[TopicPartition]) -> None:
        """Read paused partitions again."""
        with self._told() as core:
            core.resume(places)

    def positions(self) -> list[PartitionPosition]:
        """Return the position in each assigned partition."""
        return list(self._core.fetcher.positions.values())

    @overload
    def position(self, place: TopicPartition, /) -> int: ...

    @overload
    def position(self, topic: str, partition: int, /) -> int: ...

    def position(self, place: TopicPartition | str, *older: int) -> int:
        """Return the offset that is handed out next; -1 while it is being looked up."""
        with self._told() as core:
            return core.position(place_given("position", place, older)).position

    @overload
    def lag(self, place: TopicPartition, /) -> int: ...

    @overload
    def lag(self, topic: str, partition: int, /) -> int: ...

    def lag(self, place: TopicPartition | str, *older: int) -> int:
        """Return the number of records up to the end that the last fetch saw; -1 before the first
        fetch."""
        with self._told() as core:
            return core.position(place_given("lag", place, older)).lag

    @overload
    def is_at_end(self, place: TopicPartition, /) -> bool: ...

    @overload
    def is_at_end(self, topic: str, partition: int, /) -> bool: ...

    def is_at_end(self, place: TopicPartition | str, *older: int) -> bool:
        """Return true if the last fetch saw no record behind the position."""
        with self._told() as core:
            return core.position(place_given("is_at_end", place, older)).is_at_end

    def _iteration_seconds(self) -> int:
        """Return for how many seconds an iteration may wait in its next poll; raise NotSubscribed
        if there is nothing to wait for."""
        core = self._core
        core.check_reads()
        if core.membership.owned and not core.topics.is_subscribed:
            return GIVE_BACK_SECONDS
        return ITERATION_SECONDS

    @property
    def trouble(self) -> str:
        """Reason why the cluster cannot be reached at the moment; empty if nothing seems wrong."""
        return self._core.trouble(self._driver.now_ms())

    def _particulars(self) -> str:
        words = f"group {self.settings.group_id}" if self.settings.group_id else "without a group"
        if not self._driver.is_forked:
            count = len(self.assignment())
            words += f", {count} partition" if count == 1 else f", {count} partitions"
        return words
