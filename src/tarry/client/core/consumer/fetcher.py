"""Fetcher: fetches records from brokers, and buffers them until they are taken.

The next fetch of a partition is sent as soon as an answer arrives, before its records are handed
out, so that the kernel's buffer fills while user code runs: reading ahead without a thread.  The
buffer is bounded in bytes.  One fetch at a time is in flight to each broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tarry.base.errors import NONE, CorruptData, error_name
from tarry.base.ids import TopicPartition
from tarry.client.core import reactions
from tarry.client.core.connections import Connections
from tarry.client.core.consumer.epoch_check import EpochCheck
from tarry.client.core.consumer.fetch_exchange import FetchExchange
from tarry.client.core.consumer.fetched import Fetched, Gaps
from tarry.client.core.consumer.position import NO_REPLICA, PartitionPosition
from tarry.client.core.consumer.replicas import PreferredReplicas
from tarry.client.core.consumer.session import FetchSession
from tarry.client.core.metadata import LeaderHint, Metadata, leader_hint
from tarry.client.core.refresh import HOPS_MAX, Refresh
from tarry.client.core.topic import BrokerMetadata
from tarry.client.errors import CorruptRecords, LogTruncated, OffsetOutOfRange, broker_error
from tarry.client.offset_reset import RESET_NONE
from tarry.client.settings import READ_COMMITTED, ConsumerSettings
from tarry.link.tasks import wake_up
from tarry.protocol.messages.fetch import PartitionData
from tarry.records.open_batch import OpenBatch
from tarry.wire.reader import Window

log = logging.getLogger("tarry.client")

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
        self.epoch_check = EpochCheck(connections, metadata, refresh, self.forget)
        self.replicas = PreferredReplicas(metadata, settings.metadata_age_ms_max)
        # Callback for a partition whose offset does not exist any more.
        self.when_reset: Callable[[PartitionPosition], None] | None = None
        # Counters of answers, of their bytes, and of records taken.
        self.fetches = 0
        self.bytes = 0
        self.records = 0
        self._reads_committed = settings.isolation_level == READ_COMMITTED
        self._busy: dict[int, FetchExchange] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._retry = wake_up()

    # --- Out

    def work(self, now_ms: int) -> None:
        """Send a fetch to each broker that has none in flight."""
        if self.buffered_bytes >= self.settings.fetch_bytes_max:
            return
        requests: dict[int, FetchExchange] = {}
        # Brokers that lead a partition whose buffer is full.
        held: dict[int, None] = {}
        for position in self.positions.values():
            if self._is_full(position):
                held[self._source_of(position)] = None
                continue
            broker_id = self._broker_for(position, now_ms)
            if broker_id < 0 or broker_id in self._busy:
                continue
            exchange = requests.get(broker_id)
            if exchange is None:
                exchange = FetchExchange(self, broker_id)
                requests[broker_id] = exchange
            exchange.add(position, now_ms)
        self.epoch_check.work(now_ms)
        for broker_id, exchange in requests.items():
            if broker_id in held and not exchange.is_answered_at_once():
                # The broker would wait for new records, and the full partition could not be fetched
                # from it when the user has taken its records.
                continue
            connection = self.connections.for_broker(broker_id)
            if connection is None:
                continue
            self._busy[broker_id] = exchange
            exchange.begin()
            connection.send(exchange, now_ms)

    def session_at(self, broker_id: int) -> FetchSession:
        """Return the session at a broker; the session may be closed."""
        session = self._sessions.get(broker_id)
        if session is None:
            session = FetchSession()
            self._sessions[broker_id] = session
        return session

    def _is_full(self, position: PartitionPosition) -> bool:
        """Return true if the buffer of a partition is full and about to be handed out: fetch no
        more of it."""
        return (
            position.buffered_bytes >= self.settings.partition_bytes_max
            and position.has_records
            and position.error is None
            and position.fetch_offset < position.end_offset
        )

    def _source_of(self, position: PartitionPosition) -> int:
        """Return the broker that a partition is read from; -1 if it is not known."""
        if position.replica_id != NO_REPLICA:
            return position.replica_id
        partition = self.metadata.leader_of(position.topic, position.partition)
        return -1 if partition is None else partition.leader_id

    def _broker_for(self, position: PartitionPosition, now_ms: int) -> int:
        """Return the broker to fetch a partition from; -1 if it must not be fetched now."""
        if position.fetch_offset < 0 or position.is_paused or position.error is not None:
            return -1
        if position.buffered_bytes >= self.settings.partition_bytes_max:
            return -1
        if position.fetch_offset >= position.end_offset:
            return -1
        if now_ms < position.retry_at_ms:
            # Another position may have armed the timer for an earlier time, so arm it for this one
            # too.
            self.connections.tasks.schedule_earlier(self._retry, position.retry_at_ms)
            return -1
        partition = self.metadata.leader_of(position.topic, position.partition)
        if partition is None:
            self.refresh.want(now_ms)
            return -1
        leader_id = partition.leader_id
        if self.epoch_check.is_needed(position, leader_id, partition.leader_epoch):
            return -1
        if position.replica_id == NO_REPLICA:
            return leader_id
        return self.replicas.broker_for(position, leader_id, now_ms)

    # --- In

    def on_request_done(self, broker_id: int) -> None:
        self._busy.pop(broker_id, None)

    def on_answer(
        self,
        position: PartitionPosition,
        answer: PartitionData,
        broker_id: int,
        brokers: dict[int, BrokerMetadata],
        now_ms: int,
    ) -> None:
        """Handle a broker's answer for one partition; `brokers` has the address of a new leader
        that the answer names."""
        is_replica = position.replica_id == broker_id
        if answer.error_code != NONE:
            if is_replica:
                # The leader may have records that the replica lacks or refuses.
                self.leave_replica(position, error_name(answer.error_code), now_ms)
            else:
                leader = answer.current_leader
                hint = leader_hint(position.topic, position.partition, leader, brokers)
                self._on_error(position, answer, hint, now_ms)
            return
        records = answer.records
        if isinstance(records, Window) and records.size > 0:
            self._keep(position, records, aborted_in(answer), now_ms)
        elif answer.preferred_read_replica != NO_REPLICA:
            self._follow(position, broker_id, answer.preferred_read_replica, now_ms)
            return
        else:
            position.failures = 0
        position.refused_by = NONE
        if is_replica:
            position.replica_failures = 0
        self.note_ends(position, answer)

    def on_bare_answer(self, position: PartitionPosition, now_ms: int) -> None:
        """Handle an answer without any records for one partition whose end is known.

        After two such answers at the same offset, compaction has left no records up to the end.
        """
        if position.fetch_offset >= position.end_offset:
            return
        if position.readable_end < position.end_offset:
            self.pause(position, now_ms)
        elif position.bare_at == position.fetch_offset:
            position.fetch_offset = position.end_offset
        else:
            position.bare_at = position.fetch_offset

    def note_ends(self, position: PartitionPosition, answer: PartitionData) -> None:
        """Store the beginning of the log, and the end of what may be read, from the answer."""
        position.high_watermark = answer.high_watermark
        position.log_start_offset = answer.log_start_offset
        position.readable_end = answer.high_watermark
        if self._reads_committed and answer.last_stable_offset >= 0:
            position.readable_end = answer.last_stable_offset

    def _follow(
        self, position: PartitionPosition, broker_id: int, replica_id: int, now_ms: int
    ) -> None:
        """Follow the answer of a broker that names a replica instead of sending records."""
        if self.replicas.follow(position, broker_id, replica_id, now_ms):
            return
        log.info(
            "%s: broker %d names broker %d to read from, which cannot be followed; reading from "
            "the leader", position, broker_id, replica_id,
        )  # fmt: skip
        self.replicas.leave_for_long(position, now_ms)
        self.pause(position, now_ms)

    def leave_replica(self, position: PartitionPosition, reason: str, now_ms: int) -> None:
        """Read from the leader again, without a pause."""
        log.info(
            "%s is read from its leader again, not from broker %d: %s",
            position, position.replica_id, reason,
        )  # fmt: skip
        self.replicas.leave(position, now_ms)

    def _keep(
        self,
        position: PartitionPosition,
        records: Window,
        aborted: list[tuple[int, int]],
        now_ms: int,
    ) -> None:
        gaps = Gaps(position.gap, are_usual=position.has_gaps, is_trouble=position.corrupt > 0)
        fetched = Fetched(records, position.fetch_offset, gaps, aborted)
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
        self.fetches += 1
        self.bytes += fetched.size

    def _on_nothing_kept(
        self, position: PartitionPosition, fetched: Fetched, size: int, now_ms: int
    ) -> None:
        """Handle an answer with bytes, but without a usable batch."""
        flaw = fetched.flaw or f"{size} bytes hold no whole batch"
        if fetched.gap is not None:
            first, behind = fetched.gap
            if first != position.flawed_at or position.has_gaps:
                self._ask_about_gap(position, fetched.gap, now_ms)
                return
            # The broker trusted the offset of a damaged batch, and left out the records behind it.
            flaw = f"a batch was damaged, then records up to offset {behind} were left out"
            fetched.sound_from = behind
        self._on_corrupt(position, flaw, fetched.sound_from, now_ms)

    def _ask_about_gap(
        self, position: PartitionPosition, gap: tuple[int, int], now_ms: int
    ) -> None:
        """Fetch again at once, because a gap is most likely the work of compaction."""
        position.gap = gap
        if position.failures > 0:
            self.pause(position, now_ms)
        else:
            position.failures = 1

    def take_next(
        self, position: PartitionPosition, take: Callable[[OpenBatch], object], now_ms: int
    ) -> bool:
        """Pass the next buffered batch to `take`, and move the position; return False if it is
        damaged."""
        fetched = position.buffered[0]
        ends_at = fetched.next_ends_at()
        try:
            batch = fetched.open_next(position.position)
            is_newer = batch.leader_epoch > position.epoch_max
            if is_newer and batch.base_offset < position.end_offset:
                self._on_newer_epoch(position, batch.leader_epoch)
                return False
            take(batch)
        except CorruptData as error:
            self._on_damaged(position, str(error), ends_at, now_ms)
            return False
        position.note_epoch(position.position, batch.leader_epoch)
        position.position = max(batch.next_offset, position.position)
        position.corrupt = 0
        if batch.is_done:
            size = fetched.drop_next()
            position.buffered_bytes -= size
            self.buffered_bytes -= size
            if fetched.is_empty:
                position.buffered.popleft()
        return True

    def _on_newer_epoch(self, position: PartitionPosition, leader_epoch: int) -> None:
        """Fail the position because its next record has a newer leader epoch than may be read."""
        self.forget(position)
        position.drop_fetched()
        position.fail_void(
            LogTruncated(
                f"{position} was to be read in a log of leader epoch {position.epoch_max} at the "
                f"newest, and has records of epoch {leader_epoch} from offset {position.position} "
                "on: the log was cut and written anew meanwhile"
            )
        )

    def forget(self, position: PartitionPosition) -> None:
        """Subtract the buffered bytes of a partition from the total."""
        self.buffered_bytes -= position.buffered_bytes

    def _on_corrupt(
        self, position: PartitionPosition, flaw: str, sound_from: int, now_ms: int
    ) -> None:
        """Fetch a corrupt batch again, because the network may have damaged it; fail the position
        the second time."""
        position.corrupt += 1
        if position.replica_id != NO_REPLICA:
            # The leader's copy decides.  The request hides the rack, else the leader names the
            # replica again.
            self.replicas.leave_for_long(position, now_ms)
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

    def _on_damaged(
        self, position: PartitionPosition, flaw: str, sound_from: int, now_ms: int
    ) -> None:
        """Fetch a batch that did not decode again.

        The batches behind it are dropped, and those in flight too; else the damaged batch would be
        skipped.
        """
        self.forget(position)
        position.drop_fetched()
        position.flawed_at = position.position
        self._on_corrupt(position, flaw, sound_from, now_ms)

    def _on_error(
        self, position: PartitionPosition, answer: PartitionData, hint: LeaderHint, now_ms: int
    ) -> None:
        code = answer.error_code
        reaction = reactions.reaction_to(reactions.FETCH, code)
        position.refused_by = code
        if reaction == reactions.RESET:
            self._on_out_of_range(position, answer, now_ms)
        elif reaction == reactions.REFRESH:
            if not self.refresh.follow(hint):
                self.refresh.want_after(code, now_ms)
                self.pause(position, now_ms)
            elif position.failures >= HOPS_MAX:
                self.pause(position, now_ms)
            else:
                # Try the named leader at once, except if leaders keep naming each other.
                position.failures += 1
        elif reaction == reactions.RETRY:
            self.pause(position, now_ms)
        else:
            position.fail(broker_error(code, f"{position} cannot be read"))

    def _on_out_of_range(
        self, position: PartitionPosition, answer: PartitionData, now_ms: int
    ) -> None:
        offset = position.fetch_offset
        is_inside = 0 <= answer.log_start_offset <= offset <= answer.high_watermark
        if position.has_unread or is_inside:
            # The buffered records are still good; the error comes back when they are taken.  The
            # error is also no reason to move if the broker's range includes the offset.
            self.pause(position, now_ms)
            return
        # Apache Kafka's answer does not include the range of the log.
        is_known = answer.log_start_offset >= 0
        valid = "its log begins later or ends before"
        if is_known:
            valid = f"its log goes from {answer.log_start_offset} to {answer.high_watermark}"
        if self.settings.offset_reset.strategy == RESET_NONE:
            position.fail(OffsetOutOfRange(f"{position} has no offset {offset}: {valid}"))
            return
        lost = max(answer.log_start_offset - offset, 0)
        log.warning(
            "%s has no offset %d (%s); reading on as auto.offset.reset=%s says%s",
            position, offset, valid, self.settings.offset_reset.text,
            f", {lost} records are gone" if is_known else "",
        )  # fmt: skip
        assert self.when_reset is not None
        self.when_reset(position)

    def pause(self, position: PartitionPosition, now_ms: int) -> None:
        position.failures += 1
        position.retry_at_ms = now_ms + self.connections.retry_pause_ms(position.failures)
        self.connections.tasks.schedule_earlier(self._retry, position.retry_at_ms)


def aborted_in(answer: PartitionData) -> list[tuple[int, int]]:
    """Return the aborted transactions that an answer names: producer id and first offset."""
    transactions = answer.aborted_transactions
    if not transactions:
        return []
    return [(one.producer_id, one.first_offset) for one in transactions]
