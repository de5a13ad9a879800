"""Faults planted into the broker one at a time, for `search.py`.

Each fault replaces a function or a class of the product from outside, which only the interpreted
form allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.doors import Event
from tarry.broker import lifecycle
from tarry.broker.answers import Answers
from tarry.broker.apis.produce import ProduceHandler
from tarry.broker.broker import Broker
from tarry.broker.delayed.fetch import DelayedFetch, Fetches
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.kafka_connection import KafkaConnection
from tarry.broker.request import RequestContext
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.embedded import StoreLog
from tarry.log import batch_walk, retention
from tarry.log.index.epoch_index import EpochIndex
from tarry.log.index.segment_indexes import SegmentIndexes
from tarry.log.index.sparse_index import SparseIndex
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.log.recovery import recovery
from tarry.log.recovery.point_writer import RecoveryPointWriter
from tarry.partition import producers
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener, ReplicatedLog
from tarry.protocol.messages.produce import ProduceRequest
from tarry.records.rebuild import RebuiltBatch
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.history import Place
from tarry.simulation.disk import SimulatedFile
from tarry.simulation.network import SimulatedNetwork
from tarry.simulation.records import reading


def acknowledge_before_the_flush() -> None:
    def acked_end(self: ReplicatedLog, acks: int) -> int:
        return self.log.written_end_offset

    ReplicatedLog.acked_end = acked_end


def ignore_a_failed_flush() -> None:
    honest = Broker._on_flushed

    def on_flushed(self: Broker, event: Event) -> None:
        event.error = ""
        honest(self, event)

    Broker._on_flushed = on_flushed


def keep_a_torn_tail() -> None:
    batch_walk.has_valid_crc = lambda data, position, header: True


def cut_a_flushed_byte() -> None:
    honest = recovery._Recovery._scan_segment

    def scan_segment(self: recovery._Recovery, log: Log) -> str:
        if log.active.has_file:
            file = log.active.file()
            assert isinstance(file, SimulatedFile)
            if file.size > log.active.written_size:
                file.truncate(file.size - 1)
        return honest(self, log)

    recovery._Recovery._scan_segment = scan_segment


def recompress_without_the_producer() -> None:
    honest = RebuiltBatch.encode

    def encode(self: RebuiltBatch) -> bytes:
        self.header.base_sequence = max(self.header.base_sequence - 1, -1)
        return honest(self)

    RebuiltBatch.encode = encode


def know_one_batch_of_a_producer() -> None:
    producers.BATCHES_KEPT = 1


def forget_producers_in_a_restart() -> None:
    ProducerListener.on_recovered_batch = lambda self, header: None
    ProducerListener.load_snapshot = lambda self, data: True


def high_watermark_past_the_flush() -> None:
    ReplicatedLog.leader_contribution = lambda self: self.log.written_end_offset
    ReplicatedLog.on_written = lambda self: (
        self.producers.settle(),
        self.maybe_advance_high_watermark(),
    )[1]


def keep_the_leader_epoch_over_a_crash() -> None:
    ClusterState._raise_leader_epochs = lambda self: None


def trust_the_index_after_a_crash() -> None:
    """Take every entry that an index file holds, not only those that the recovery point covers."""

    def try_load(self: SegmentIndexes, index: SparseIndex, suffix: str, entries: int) -> bool:
        path = self.path + suffix
        if not self.disk.exists(path):
            return entries == 0
        content = self.disk.open(path).read(0, 1 << 20)
        index.load(content, len(content) // index.entry_bytes())
        return True

    def reset(self: SegmentIndexes) -> None:
        self.saved_offsets = 1
        self.saved_times = 1
        if not self.try_load():
            honest_reset(self)

    honest_reset = SegmentIndexes.reset
    SegmentIndexes._try_load = try_load
    SegmentIndexes.reset = reset


def lose_the_wake_up_of_a_fetch() -> None:
    honest = Fetches.on_moved

    def on_moved(self: Fetches, partition: ReplicatedLog) -> None:
        honest(self, partition)
        if partition.high_watermark % 4 == 0:
            self.touched.pop(partition.watch_key, None)

    Fetches.on_moved = on_moved


def answer_a_fetch_only_when_it_expires() -> None:
    DelayedFetch.try_complete = lambda self: False


def apply_metadata_before_it_is_durable() -> None:
    def on_written(self: StoreLog) -> bool:
        self.on_flushed(self.log.written_end_offset)
        return False

    StoreLog.on_written = on_written


def answer_a_duplicate_before_the_original_is_durable() -> None:
    honest = ProducerStates.check

    def check(self: ProducerStates, header: object) -> object:
        verdict = honest(self, header)
        if verdict.is_duplicate:
            verdict.last_offset = -1
        return verdict

    ProducerStates.check = check


def show_a_log_start_that_is_not_durable() -> None:
    honest = retention.delete_old_segments

    def delete_old_segments(log: Log, now_wall_ms: int, high_watermark: int) -> int:
        count = honest(log, now_wall_ms, high_watermark)
        log.advance_log_start_offset(log.coming_start_offset)
        return count

    retention.delete_old_segments = delete_old_segments


def start_uncleanly_without_taking_the_marker_away() -> None:
    honest = Logs.load

    def load(self: Logs) -> None:
        remove = self.disk.remove
        self.disk.remove = lambda path: None
        honest(self)
        self.disk.remove = remove

    Logs.load = load


def count_a_stop_of_the_process_as_waiting() -> None:
    def attend(self: Broker, now_ms: int, now_wall_ms: int) -> None:
        self._turn_due_ms = now_ms
        honest(self, now_ms, now_wall_ms)

    honest = Broker._attend
    Broker._attend = attend


def forget_the_names_of_a_killed_life() -> None:
    recovery._Recovery.has_uncovered_names = lambda self, point: False


def answer_a_deletion_of_records_before_it_is_durable() -> None:
    honest = RecordDeletions.request

    def request(self: RecordDeletions, partition: ReplicatedLog, offset: int) -> None:
        honest(self, partition, offset)
        partition.log.advance_log_start_offset(offset)

    RecordDeletions.request = request


def delete_one_record_more_than_was_asked() -> None:
    honest = RecordDeletions.request

    def request(self: RecordDeletions, partition: ReplicatedLog, offset: int) -> None:
        honest(self, partition, min(offset + 1, partition.high_watermark))

    RecordDeletions.request = request


def serve_damaged_batches() -> None:
    """The broker's own damage, of more answers than the network damages."""
    honest = SimulatedNetwork.maybe_damage

    def maybe_damage(self: SimulatedNetwork, data: bytes) -> bytes:
        damaged = honest(self, data)
        self.damages = 0
        return damaged

    SimulatedNetwork.maybe_damage = maybe_damage


def read_on_behind_damage() -> None:
    """The client's fault: what a damaged batch holds is never fetched again."""

    def read_batches(context: RunContext, place: Place, offset: int, *rest: object) -> int:
        damages = context.damages_seen
        end_offset = honest_read(context, place, offset, *rest)
        return end_offset + 1 if context.damages_seen > damages else end_offset

    honest_read = reading._read_batches
    reading._read_batches = read_batches


def forget_changed_settings_in_a_restart() -> None:
    lifecycle.take_over_changes = lambda settings, view: settings.overlay({}, {})


def handle_requests_while_one_before_them_waits() -> None:
    KafkaConnection.must_next_wait = lambda self: False


def count_a_produce_without_an_answer_as_done_at_once() -> None:
    honest = ProduceHandler.handle

    def handle(self: ProduceHandler, context: RequestContext, request: ProduceRequest) -> object:
        answer = honest(self, context, request)
        if request.acks == 0 and not context.is_answered and not context.connection.is_closed:
            context.respond_nothing()
            context.respond_nothing = lambda: None
        return answer

    ProduceHandler.handle = handle


def keep_the_place_of_answers_that_have_left() -> None:
    honest = KafkaConnection.release

    def release(self: KafkaConnection) -> None:
        before = len(self.slots)
        honest(self)
        if self.slots and len(self.slots) < before:
            self.first_slot = before - len(self.slots)

    KafkaConnection.release = release


def name_an_epoch_in_which_nothing_was_written() -> None:
    honest = EpochIndex.end_offset_for

    def end_offset_for(self: EpochIndex, epoch: int, log_end_offset: int) -> tuple[int, int]:
        found, end_offset = honest(self, epoch, log_end_offset)
        return (found if found < 0 else epoch), end_offset

    EpochIndex.end_offset_for = end_offset_for


def keep_what_waits_for_a_lost_connection() -> None:
    honest = Answers.forget

    def forget(self: Answers, connection: KafkaConnection) -> None:
        connection.slots = []
        honest(self, connection)

    Answers.forget = forget


def keep_the_watch_of_a_lost_connection() -> None:
    honest = Answers.forget

    def forget(self: Answers, connection: KafkaConnection) -> None:
        connection.watch = None
        honest(self, connection)

    Answers.forget = forget


def keep_the_files_of_a_refused_round_for_ever() -> None:
    honest = RecoveryPointWriter.begin

    def begin(self: RecoveryPointWriter, now_ms: int) -> int:
        # The round begins with them, and with as much less room for logs.
        kept, self._unflushed = self._unflushed, []
        flush_id = -1
        if len(kept) < self.files_per_round:
            flush_id = honest(self, now_ms)
        self._unflushed = [*kept, *self._unflushed]
        return flush_id

    RecoveryPointWriter.begin = begin


# A seed that found each.
RECORDS: Final[dict[Callable[[], None], int]] = {
    acknowledge_before_the_flush: 1,
    ignore_a_failed_flush: 1,
    keep_a_torn_tail: 119,
    cut_a_flushed_byte: 1,
    recompress_without_the_producer: 4,
    know_one_batch_of_a_producer: 34,
    forget_producers_in_a_restart: 2,
    high_watermark_past_the_flush: 17,
    keep_the_leader_epoch_over_a_crash: 1,
    trust_the_index_after_a_crash: 157,
    lose_the_wake_up_of_a_fetch: 4,
    answer_a_fetch_only_when_it_expires: 1,
    apply_metadata_before_it_is_durable: 1,
    answer_a_duplicate_before_the_original_is_durable: 125,
    show_a_log_start_that_is_not_durable: 3,
    start_uncleanly_without_taking_the_marker_away: 2,
    count_a_stop_of_the_process_as_waiting: 121,
    forget_the_names_of_a_killed_life: 50,
    answer_a_deletion_of_records_before_it_is_durable: 3,
    delete_one_record_more_than_was_asked: 2,
    serve_damaged_batches: 13,
    read_on_behind_damage: 13,
    forget_changed_settings_in_a_restart: 6,
    handle_requests_while_one_before_them_waits: 13,
    count_a_produce_without_an_answer_as_done_at_once: 27,
    keep_the_place_of_answers_that_have_left: 27,
    name_an_epoch_in_which_nothing_was_written: 37,
    keep_what_waits_for_a_lost_connection: 4,
    keep_the_watch_of_a_lost_connection: 1,
    keep_the_files_of_a_refused_round_for_ever: 127,
}
