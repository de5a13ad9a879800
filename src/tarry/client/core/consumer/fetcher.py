"""Fetcher: asks leaders for records, and keeps the records until they are taken.

The next fetch of a partition leaves as soon as an answer is there, before its records are handed
out, so that the kernel's buffer fills while user code runs: reading ahead without a thread.  What
is kept is bounded by bytes.  One fetch is under way at a broker at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tarry.base.errors import NONE, error_name
from tarry.base.ids import TopicPartition
from tarry.client.core import reactions
from tarry.client.core.connections import Connections
from tarry.client.core.consumer.epoch_check import EpochCheck
from tarry.client.core.consumer.fetched import Fetched, Gaps
from tarry.client.core.consumer.lookup import EARLIEST, LATEST
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.metadata import ZERO_ID, LeaderHint, Metadata, brokers_of, leader_hint
from tarry.client.core.refresh import Refresh
from tarry.client.errors import BrokerError, CorruptRecords, OffsetOutOfRange
from tarry.client.settings import RESET_EARLIEST, RESET_NONE, ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.exchange import VERSION_UNLIMITED, Exchange
from tarry.link.tasks import wake_up
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
        self.positions: dict[TopicPartition, PartitionPosition] = {}
        self.buffered_bytes = 0
        self.epoch_check = EpochCheck(connections, metadata, refresh)
        # Called with a partition whose offset is gone, and where to go instead.
        self.when_reset: Callable[[TopicPartition, int], None] | None = None
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
        """Return the leader to ask for a partition now; -1: do not ask."""
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
        """Handle the broker's answer about one partition."""
        if answer.error_code != NONE:
            self._on_error(position, answer, hint, now_ms)
            return
        records = answer.records
        if isinstance(records, Window) and records.size > 0:
            self._keep(position, records, now_ms)
        else:
            position.failures = 0
        position.high_watermark = answer.high_watermark
        position.log_start_offset = answer.log_start_offset

    def _keep(self, position: PartitionPosition, records: Window, now_ms: int) -> None:
        gaps = Gaps(position.gap, are_usual=position.has_gaps, is_trouble=position.corrupt > 0)
        fetched = Fetched(records, position.fetch_offset, gaps)
        if fetched.flaw:
            position.flawed_at = fetched.next_offset
        if fetched.is_empty:
            self._on_nothing_kept(position, fetched, records.size, now_ms)
            return
        position.failures = 0
        position.has_gaps = gaps.are_usual
        position.gap = fetched.gap
        position.buffered.append(fetched)
        position.buffered_bytes += fetched.size
        position.fetch_offset = fetched.next_offset
        position.fetch_epoch = fetched.leader_epoch
        self.buffered_bytes += fetched.size

    def _on_nothing_kept(
        self, position: PartitionPosition, fetched: Fetched, size: int, now_ms: int
    ) -> None:
        """Handle an answer that has bytes, and no batch that may be handed out."""
        flaw = fetched.flaw or f"{size} bytes hold no whole batch"
        if fetched.gap is not None:
            first, behind = fetched.gap
            if first != position.flawed_at or position.has_gaps:
                self._ask_about_gap(position, fetched.gap, now_ms)
                return
            # A broker goes by the offset that a damaged batch claims, and leaves it out.
            flaw = f"a batch was damaged, then records up to offset {behind} were left out"
            fetched.sound_from = behind
        self._on_corrupt(position, flaw, fetched.sound_from, now_ms)

    def _ask_about_gap(
        self, position: PartitionPosition, gap: tuple[int, int], now_ms: int
    ) -> None:
        """Ask once more, and at once, because the gap is most likely a compaction's."""
        position.gap = gap
        if position.failures > 0:
            self.pause(position, now_ms)
        else:
            position.failures = 1

    def forget(self, position: PartitionPosition) -> None:
        """Take what is kept of a partition off the buffer's count of bytes."""
        self.buffered_bytes -= position.buffered_bytes

    def _on_corrupt(
        self, position: PartitionPosition, flaw: str, sound_from: int, now_ms: int
    ) -> None:
        """Fetch a corrupt batch once more, because the network may have damaged it; the second time
        raise it to the user."""
        position.corrupt += 1
        if position.corrupt < CORRUPT_MAX:
            self.pause(position, now_ms)
            return
        offset = position.fetch_offset
        behind = max(sound_from, offset + 1)
        position.fail(
            CorruptRecords(
                f"{position} cannot be read at offset {offset}, and was fetched {CORRUPT_MAX} "
                f"times: {flaw}; to go on behind what is damaged, "
                f"seek({position.topic!r}, {position.partition}, {behind})"
            )
        )

    def on_damaged(
        self, position: PartitionPosition, flaw: str, sound_from: int, now_ms: int
    ) -> None:
        """Fetch a batch that did not decode once more.  The batches kept behind it are dropped, and
        so are those on their way, else the damaged batch would be skipped."""
        self.forget(position)
        position.drop_fetched()
        position.flawed_at = position.position
        self._on_corrupt(position, flaw, sound_from, now_ms)

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
            position.fail(BrokerError(code, f"{position} cannot be read"))

    def _on_out_of_range(
        self, position: PartitionPosition, answer: PartitionData, now_ms: int
    ) -> None:
        offset = position.fetch_offset
        is_inside = 0 <= answer.log_start_offset <= offset <= answer.high_watermark
        if position.has_unread or is_inside:
            # What was fetched is still good, and the question comes up again behind it.  A range
            # that holds the offset is no reason to leave it.
            self.pause(position, now_ms)
            return
        valid = f"its log goes from {answer.log_start_offset} to {answer.high_watermark}"
        if self.settings.offset_reset == RESET_NONE:
            position.fail(OffsetOutOfRange(f"{position} has no offset {offset}: {valid}"))
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


class FetchExchange(Exchange[FetchResponse]):
    """Exchange of one Fetch request for the partitions of one leader."""

    def __init__(self, fetcher: Fetcher, leader_id: int) -> None:
        settings = fetcher.settings
        # The broker may use up its wait before it answers.
        timeout_ms = settings.request_timeout_ms + settings.fetch_wait_ms_max
        super().__init__(api_keys.FETCH, decode_fetch_response, timeout_ms)
        self.fetcher = fetcher
        self.leader_id = leader_id
        self._positions: dict[TopicPartition, PartitionPosition] = {}
        self._eras: dict[TopicPartition, int] = {}

    def add(self, position: PartitionPosition) -> None:
        place = (position.topic, position.partition)
        self._positions[place] = position

    def begin(self) -> None:
        for place, position in self._positions.items():
            self._eras[place] = position.era

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

    def on_response(self, response: FetchResponse, now_ms: int) -> None:
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
                position.fail(error)

    def _current(self) -> list[PartitionPosition]:
        found = [self._current_at(place) for place in self._positions]
        return [position for position in found if position is not None]

    def _current_at(self, place: TopicPartition) -> PartitionPosition | None:
        """Return the partition's position, unless the partition was given up or began a new era
        since this fetch left."""
        position = self._positions.get(place)
        if position is None or self.fetcher.positions.get(place) is not position:
            return None
        return position if self._eras[place] == position.era else None
