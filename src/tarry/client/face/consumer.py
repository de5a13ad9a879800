"""ConsumerFace: the calls of a consumer that do not wait, alike in every face.

They tell the core what to read, and ask it where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

from tarry.base.ids import TopicPartition
from tarry.client.core.arguments import place_of
from tarry.client.core.consumer.lookup import EARLIEST, LATEST
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.group.consumer import GroupConsumerCore, GroupView
from tarry.client.core.outgoing import check_timestamp
from tarry.client.face.face import ClientFace
from tarry.client.metrics import ConsumerMetrics
from tarry.client.settings import ConsumerSettings


class ConsumerFace(ClientFace[GroupConsumerCore]):
    """Face to be subclassed; a subclass says how its core may be touched."""

    settings: ConsumerSettings

    def _told(self) -> AbstractContextManager[GroupConsumerCore]:
        """Yield the core, to be told or asked something while nobody turns it; records that an
        iteration did not yield are taken back."""
        raise NotImplementedError

    def _check_free(self) -> None:
        """Refuse what a codec or an assignor of this consumer asks it while it runs."""
        self._core.check_not_decoding()
        self._core.check_not_assigning()

    # --- The group

    def unsubscribe(self) -> None:
        """Unsubscribe: the next poll gives everything back and leaves the group."""
        with self._told() as core:
            core.unsubscribe()

    def subscription(self) -> list[str]:
        """Return the topics that are subscribed; for a pattern, those that match by now."""
        return list(self._core.topics.subscribed)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        return list(self._core.fetcher.positions)

    @property
    def group(self) -> GroupView:
        """View of this member's place in its group."""
        self._check_free()
        with self._driver.lock:
            return self._core.view()

    def metrics(self) -> ConsumerMetrics:
        """Return what was done so far and where the consumer stands; cheap enough for every poll,
        and allowed while another call waits, in a synchronous consumer from any thread too."""
        self._check_free()
        with self._driver.lock:
            return self._core.metrics(self._driver.now_ms())

    # --- What is read, and from where

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Read these partitions, and no others: those that were read already go on, others begin
        where seek says, or as `auto.offset.reset` does."""
        with self._told() as core:
            core.assign(places)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Hand out the record at this offset next; NotSubscribed for what is not read."""
        with self._told() as core:
            core.seek((topic, partition), offset)

    def seek_to_beginning(self, places: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the first record of these partitions, or of all that are read."""
        with self._told() as core:
            core.seek_all(places, EARLIEST)

    def seek_to_end(self, places: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the end of these partitions, or of all that are read: only what is written from
        now on is handed out."""
        with self._told() as core:
            core.seek_all(places, LATEST)

    def seek_to_time(self, timestamp: int, places: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the first record that is not older than `timestamp` (milliseconds since 1970),
        else to the end; in these partitions, or in all that are read."""
        check_timestamp(timestamp)
        with self._told() as core:
            core.seek_all(places, timestamp)

    def pause(self, places: Iterable[TopicPartition]) -> None:
        """Read nothing of these partitions; what was read ahead is dropped."""
        with self._told() as core:
            core.pause(places)

    def resume(self, places: Iterable[TopicPartition]) -> None:
        """Read paused partitions again."""
        with self._told() as core:
            core.resume(places)

    def positions(self) -> list[PartitionPosition]:
        """Return the position in each assigned partition."""
        return list(self._core.fetcher.positions.values())

    def position(self, topic: str, partition: int) -> int:
        """Return the offset that is handed out next; -1 while it is being looked up."""
        place = place_of("position", (topic, partition))
        with self._told() as core:
            return core.position(place).position

    def lag(self, topic: str, partition: int) -> int:
        """Return the number of records up to the end that the last fetch saw; -1 before the first
        fetch."""
        place = place_of("lag", (topic, partition))
        with self._told() as core:
            return core.position(place).lag

    def is_at_end(self, topic: str, partition: int) -> bool:
        """Return true if the last fetch saw no record behind the position."""
        place = place_of("is_at_end", (topic, partition))
        with self._told() as core:
            return core.position(place).is_at_end

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
