"""Fetcher: asks leaders for records and keeps what came until somebody takes it.

The next fetch of a partition leaves as soon as an answer is there, before its records are handed
out, so that the kernel's buffer fills while user code runs: reading ahead without a thread.  What
is kept is bounded by bytes.  One fetch is under way at a broker at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from tarry.base.errors import NONE, CorruptData, error_name
from tarry.client.core import reactions
from tarry.client.core.connections import Connections
from tarry.client.core.epoch_check import EpochCheck
from tarry.client.core.events import RECORDS_READY, Notice
from tarry.client.core.exchange import VERSION_UNLIMITED, Exchange
from tarry.client.core.fetched import Fetched
from tarry.client.core.lookup import EARLIEST, LATEST
from tarry.client.core.metadata import ZERO_ID, LeaderHint, Metadata, brokers_of, leader_hint
from tarry.client.core.position import PartitionPosition
from tarry.client.core.refresh import Refresh
from tarry.client.core.tasks import wake_up
from tarry.client.errors import BrokerError, ClientError, CorruptRecords, OffsetOutOfRange
from tarry.client.settings import RESET_EARLIEST, RESET_NONE, ConsumerSettings
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    decode_fetch_response,
)
from tarry.wire.reader import Window

log = logging.getLogger("tarry.client")

CONSUMER_ID: Final = -1
SESSIONLESS_EPOCH: Final = -1

# From this version on topics are named by their ids only.
VERSION_WITH_IDS: Final = 13

CORRUPT_MAX: Final = 2


class Fetcher:
    """Fetches for the partitions that a consumer reads."""

    def __init__(
        self,
        settings: ConsumerSettings,
        connections: Connections,
        metadata: Metadata,
        refresh: Refresh,
    ) -> None:
        self.settings = settings
        self.connections = connections
        self.metadata = metadata
        self.refresh = refresh
        self.positions: dict[tuple[str, int], PartitionPosition] = {}
        self.buffered_bytes = 0
        self.epoch_check = EpochCheck(connections, metadata, refresh)
        # Called with a partition whose offset is gone, and where to go instead.
        self.when_reset: Callable[[tuple[str, int], int], None] | None = None
        self._busy: dict[int, FetchExchange] = {}
        self._retry = wake_up()

    # --- Out

    def work(self, now_ms: int) -> None:
        """Send one fetch to each leader that none is under way at."""
        if self.buffered_bytes >= self.settings.fetch_bytes_max:
            return
        requests: dict[int, FetchExchange] = {}
        for position in self.positions.values():
            leader_id = self._leader_for(position, now_ms)
            if leader_id < 0 or leader_id in self._busy:
                continue
            exchange = requests.get(leader_id)
            if exchange is None:
                exchange = FetchExchange(self, leader_id)
                requests[leader_id] = exchange
            exchange.add(position)
        self.epoch_check.work(now_ms)
        for leader_id, exchange in requests.items():
            connection = self.connections.for_broker(leader_id)
            if connection is None:
                continue
            self._busy[leader_id] = exchange
            exchange.begin()
            connection.send(exchange, now_ms)

    def _leader_for(self, position: PartitionPosition, now_ms: int) -> int:
        """The leader to ask for a partition now; -1: do not ask."""
        if position.fetch_offset < 0 or position.is_paused or position.error is not None:
            return -1
        if position.buffered_bytes >= self.settings.partition_bytes_max:
            return -1
        if now_ms < position.retry_at_ms:
            # Others may have been armed earlier and run by now: keep the turn for this one.
            self.connections.tasks.schedule_earlier(self._retry, position.retry_at_ms)
            return -1
        partition = self.metadata.leader_of(position.topic, position.partition)
        if partition is None:
            self.refresh.want(now_ms)
            return -1
        leader_id = partition.leader_id
        if self.epoch_check.is_needed(position, leader_id, partition.leader_epoch):
            return -1
        return leader_id

    # --- In

    def on_request_done(self, leader_id: int) -> None:
        self._busy.pop(leader_id, None)

    def on_answer(
        self, position: PartitionPosition, answer: PartitionData, hint: LeaderHint, now_ms: int
    ) -> None:
        """The broker's word on one partition."""
        if answer.error_code != NONE:
            self._on_error(position, answer, hint, now_ms)
            return
        position.failures = 0
        position.high_watermark = answer.high_watermark
        position.log_start_offset = answer.log_start_offset
        records = answer.records
        if isinstance(records, Window) and records.size > 0:
            self._keep(position, records, now_ms)
        self.connections.put(Notice(RECORDS_READY))

    def _keep(self, position: PartitionPosition, records: Window, now_ms: int) -> None:
        try:
            fetched = Fetched(records)
        except CorruptData as error:
            self._on_corrupt(position, str(error), now_ms)
            return
        if fetched.is_empty:
            self._on_corrupt(position, f"{records.size} bytes hold no whole batch", now_ms)
            return
        position.buffered.append(fetched)
        position.buffered_bytes += fetched.size
        position.fetch_offset = fetched.next_offset
        position.fetch_epoch = fetched.leader_epoch
        self.buffered_bytes += fetched.size

    def forget(self, position: PartitionPosition) -> None:
        """What is kept of a partition is of no use any more."""
        self.buffered_bytes -= position.buffered_bytes

    def _on_corrupt(self, position: PartitionPosition, reason: str, now_ms: int) -> None:
        """Once more, since the network may have done it; the second time it is raised."""
        position.corrupt += 1
        if position.corrupt >= CORRUPT_MAX:
            position.error = CorruptRecords(f"{position} at offset {position.position}: {reason}")
            self.connections.put(Notice(RECORDS_READY))
            return
        self.pause(position, now_ms)

    def drop_buffered(self, position: PartitionPosition, reason: str, now_ms: int) -> None:
        """A batch did not decode: fetch it once more from the position."""
        self.forget(position)
        position.buffered.clear()
        position.buffered_bytes = 0
        position.fetch_offset = position.position
        self._on_corrupt(position, reason, now_ms)

    def _on_error(
        self, position: PartitionPosition, answer: PartitionData, hint: LeaderHint, now_ms: int
    ) -> None:
        code = answer.error_code
        reaction = reactions.reaction_to(reactions.FETCH, code)
        if reaction == reactions.RESET:
            self._on_out_of_range(position, answer, now_ms)
        elif reaction == reactions.REFRESH:
            if not self.refresh.follow(hint):
                self.refresh.want(now_ms)
                self.pause(position, now_ms)
        elif reaction == reactions.RETRY:
            self.pause(position, now_ms)
        else:
            position.error = BrokerError(code, f"{position} cannot be read")
            self.connections.put(Notice(RECORDS_READY))

    def _on_out_of_range(
        self, position: PartitionPosition, answer: PartitionData, now_ms: int
    ) -> None:
        offset = position.fetch_offset
        if position.buffered:
            # What is kept is still good; the question comes up again behind it.
            self.pause(position, now_ms)
            return
        valid = f"its log goes from {answer.log_start_offset} to {answer.high_watermark}"
        if self.settings.offset_reset == RESET_NONE:
            position.error = OffsetOutOfRange(f"{position} has no offset {offset}: {valid}")
            self.connections.put(Notice(RECORDS_READY))
            return
        is_earliest = self.settings.offset_reset == RESET_EARLIEST
        lost = max(answer.log_start_offset - offset, 0)
        log.warning(
            "%s has no offset %d (%s); reading on from the %s, %d records are gone",
            position, offset, valid, "beginning" if is_earliest else "end", lost,
        )  # fmt: skip
        assert self.when_reset is not None
        place = (position.topic, position.partition)
        self.when_reset(place, EARLIEST if is_earliest else LATEST)

    def pause(self, position: PartitionPosition, now_ms: int) -> None:
        position.failures += 1
        position.retry_at_ms = now_ms + self.connections.retry_pause_ms(position.failures)
        self.connections.tasks.schedule_earlier(self._retry, position.retry_at_ms)


class FetchExchange(Exchange):
    """One Fetch request for the partitions of one leader."""

    def __init__(self, fetcher: Fetcher, leader_id: int) -> None:
        settings = fetcher.settings
        # The broker may use up its wait before it answers.
        timeout_ms = settings.request_timeout_ms + settings.fetch_wait_ms_max
        super().__init__(api_keys.FETCH, decode_fetch_response, timeout_ms)
        self.fetcher = fetcher
        self.leader_id = leader_id
        self._positions: dict[tuple[str, int], PartitionPosition] = {}
        self._seeks: dict[tuple[str, int], int] = {}

    def add(self, position: PartitionPosition) -> None:
        place = (position.topic, position.partition)
        self._positions[place] = position

    def begin(self) -> None:
        for place, position in self._positions.items():
            self._seeks[place] = position.seeks

    def version_max(self) -> int:
        metadata = self.fetcher.metadata
        if any(metadata.topic_id(topic) == ZERO_ID for topic, _ in self._positions):
            return VERSION_WITH_IDS - 1
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        fetcher = self.fetcher
        settings = fetcher.settings
        topics: dict[str, FetchTopic] = {}
        for (name, index), position in self._positions.items():
            topic = topics.get(name)
            if topic is None:
                topic = FetchTopic(name, fetcher.metadata.topic_id(name))
                topics[name] = topic
            leader = fetcher.metadata.leader_of(name, index)
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=leader.leader_epoch if leader is not None else -1,
                    fetch_offset=position.fetch_offset,
                    partition_max_bytes=settings.partition_bytes_max,
                )
            )
        return FetchRequest(
            replica_id=CONSUMER_ID,
            max_wait_ms=settings.fetch_wait_ms_max,
            min_bytes=settings.fetch_bytes_min,
            max_bytes=settings.fetch_bytes_max,
            session_epoch=SESSIONLESS_EPOCH,
            topics=[*topics.values()],
        )

    def on_response(self, response: Any, now_ms: int) -> None:
        assert isinstance(response, FetchResponse)
        fetcher = self.fetcher
        fetcher.on_request_done(self.leader_id)
        if response.error_code != NONE:
            log.warning("a fetch was refused: %s", error_name(response.error_code))
            for position in self._current():
                fetcher.pause(position, now_ms)
            return
        brokers = brokers_of(response.node_endpoints)
        for topic in response.responses:
            name = topic.topic or fetcher.metadata.names.get(topic.topic_id, "")
            for answer in topic.partitions:
                index = answer.partition_index
                current = self._current_at((name, index))
                if current is not None:
                    hint = leader_hint(name, index, answer.current_leader, brokers)
                    fetcher.on_answer(current, answer, hint, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        fetcher = self.fetcher
        fetcher.on_request_done(self.leader_id)
        for position in self._current():
            if error.is_retriable:
                fetcher.pause(position, now_ms)
            else:
                position.error = error
                fetcher.connections.put(Notice(RECORDS_READY))

    def _current(self) -> list[PartitionPosition]:
        found = [self._current_at(place) for place in self._positions]
        return [position for position in found if position is not None]

    def _current_at(self, place: tuple[str, int]) -> PartitionPosition | None:
        """The partition, unless it was sought elsewhere or given up since this fetch left."""
        position = self._positions.get(place)
        if position is None or self.fetcher.positions.get(place) is not position:
            return None
        return position if self._seeks[place] == position.seeks else None
