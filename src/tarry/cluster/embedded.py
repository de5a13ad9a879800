"""The embedded metadata store: a log of this broker's own, replayed at start.

What is decided together is one record batch, so a crash keeps all of it or nothing.  The log
stays short by snapshots: a batch that begins with `StateReset` and says everything; once it is
durable, the log begins there.  A crash in between is harmless, since a replay that meets the
batch starts anew at it, wherever it began.

Invariant: `state` is the log below `applied_end_offset`, `latest` adds what is not durable yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base.doors import LogFile, Random
from tarry.base.errors import CorruptData, InvalidSetting
from tarry.cluster.ids import id_text, random_id
from tarry.cluster.pending import PendingState
from tarry.cluster.producer_ids import ProducerIds
from tarry.cluster.records import (
    BrokerRegistered,
    BrokerStartedUncleanly,
    ClusterCreated,
    MetadataRecord,
    ProducerIdsReserved,
    StateReset,
    decode_record,
    encode_record,
)
from tarry.cluster.state import ClusterState
from tarry.cluster.topic_names import METADATA_TOPIC
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records

if TYPE_CHECKING:
    from tarry.log.logs import Logs

METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"

# A replay of so many bytes, some 5,000 records, takes about a tenth of a second.
SNAPSHOT_BYTES_MIN: Final = 1024 * 1024
# Or when the log is so many times what a snapshot of it would be: then few are made.
SNAPSHOT_RATIO: Final = 4
# In a turn only a state of so few topics and partitions is written as a whole, a few
# milliseconds of work; a larger one waits for the next start.
SNAPSHOT_ITEMS_IN_TURN_MAX: Final = 1_000

# What is read at once in a replay: a batch is at most as large as what one request decides,
# 10,000 partitions, or as a snapshot.
_READ_BYTES: Final = 1024 * 1024
_BATCH_BYTES_MAX: Final = 1 << 30

_LEADER_EPOCH: Final = 0


class _PendingBatch:
    """Records that are appended and not known to be durable."""

    __slots__ = ("base_offset", "end_offset", "records", "snapshot_bytes")

    def __init__(self, base_offset: int, end_offset: int, records: list[MetadataRecord]) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.records = records
        # Not 0: a snapshot of this size, of which the state has every record already.
        self.snapshot_bytes = 0


class EmbeddedStore:
    """Implements `MetadataStore`.  Made by `open_store`; its owner writes and flushes `log`."""

    def __init__(self, log: Log, snapshot_bytes_min: int = SNAPSHOT_BYTES_MIN) -> None:
        self.log = log
        self.snapshot_bytes_min = snapshot_bytes_min
        self.state = ClusterState()
        self.latest = PendingState(self.state)
        self.producer_ids = ProducerIds()
        self.applied_end_offset: int = log.log_start_offset
        self._pending: list[_PendingBatch] = []
        # Size of the last snapshot, and of what was appended after it.
        self._snapshot_bytes = 0
        self._bytes_since_snapshot = 0

    @property
    def has_pending(self) -> bool:
        return len(self._pending) > 0

    def append(self, records: list[MetadataRecord], now_wall_ms: int) -> int:
        self._maybe_snapshot(now_wall_ms)
        batch = self._append_batch(records, now_wall_ms)
        for record in records:
            self.latest.add(record)
        return batch.end_offset

    def flushed(self, offset: int) -> list[MetadataRecord]:
        applied: list[MetadataRecord] = []
        pending = self._pending
        while pending and pending[0].end_offset <= offset:
            batch = pending.pop(0)
            self.applied_end_offset = batch.end_offset
            if batch.snapshot_bytes > 0:
                self._begin_log_at(batch.base_offset, batch.snapshot_bytes)
                continue
            for record in batch.records:
                self.state.apply(record)
                if isinstance(record, ProducerIdsReserved):
                    self.producer_ids.add(record)
            applied.extend(batch.records)
        self._rebuild_latest()
        return applied

    def on_write_failed(self) -> None:
        end_offset = self.log.log_end_offset
        self._pending = [batch for batch in self._pending if batch.end_offset <= end_offset]
        if self.producer_ids.awaited_offset > end_offset:
            self.producer_ids.awaited_offset = -1
        self._rebuild_latest()

    def _rebuild_latest(self) -> None:
        self.latest.rebuild([record for batch in self._pending for record in batch.records])

    def _append_batch(self, records: list[MetadataRecord], now_wall_ms: int) -> _PendingBatch:
        assert records
        builder = BatchBuilder()
        for record in records:
            builder.append(now_wall_ms, None, encode_record(record))
        data = builder.build()
        base_offset = self.log.append_bytes(data, _LEADER_EPOCH, now_wall_ms)
        self._bytes_since_snapshot += len(data)
        batch = _PendingBatch(base_offset, self.log.log_end_offset, records)
        self._pending.append(batch)
        return batch

    # -- snapshots

    def is_snapshot_due(self) -> bool:
        """Whether the log is much longer than what it says."""
        return self._bytes_since_snapshot > max(
            self.snapshot_bytes_min, SNAPSHOT_RATIO * self._snapshot_bytes
        )

    def append_snapshot(self, now_wall_ms: int) -> None:
        """Append the whole state; when it is durable, the log begins with it."""
        assert not self._pending, "a snapshot says what is durable"
        # In a segment of its own, so that those before it can go.
        if self.log.active.size > 0:
            self.log.roll()
        size_before = self.log.size_bytes
        batch = self._append_batch(self.state.snapshot(), now_wall_ms)
        batch.records = []
        batch.snapshot_bytes = self.log.size_bytes - size_before

    def _maybe_snapshot(self, now_wall_ms: int) -> None:
        if self._pending or not self.is_snapshot_due():
            return
        items = len(self.state.topics) + self.state.partition_count
        if items <= SNAPSHOT_ITEMS_IN_TURN_MAX:
            self.append_snapshot(now_wall_ms)

    def _begin_log_at(self, snapshot_offset: int, snapshot_bytes: int) -> None:
        self._snapshot_bytes = snapshot_bytes
        self._bytes_since_snapshot = 0
        self.log.advance_log_start_offset(snapshot_offset)

    # -- start

    def replay(self) -> None:
        """Apply everything that the log holds.  Only before the first turn."""
        log = self.log
        if log.flaw_offset >= 0:
            raise CorruptData(
                f"{METADATA_DIRECTORY} is damaged at offset {log.flaw_offset}: the disk lost what "
                "it had flushed; restore the directory from a copy"
            )
        end = log.end_position()
        offset: int = log.log_start_offset
        while offset < log.written_end_offset:
            region = log.read(offset, end, _READ_BYTES, True)
            assert region is not None
            data = region.file.read(region.position, region.size)
            offset = self._replay_batches(data)
        self.applied_end_offset = offset
        self.latest.reset()

    def _replay_batches(self, data: bytes) -> int:
        position = 0
        end_offset = -1
        while position < len(data):
            header = decode_batch_header(data, position)
            for stored in decode_records(data, size_max=_BATCH_BYTES_MAX, position=position):
                if stored.value is None:
                    raise CorruptData(f"{METADATA_DIRECTORY} holds an empty record")
                record = decode_record(stored.value)
                if isinstance(record, StateReset):
                    self._begin_log_at(header.base_offset, header.size)
                self.state.apply(record)
            self._bytes_since_snapshot += header.size
            position += header.size
            end_offset = header.last_offset + 1
        return end_offset


def open_store(
    logs: Logs,
    *,
    broker_id: int,
    random: Random,
    now_wall_ms: int,
    snapshot_bytes_min: int = SNAPSHOT_BYTES_MIN,
) -> EmbeddedStore:
    """Open or make the store and make durable what a start has to record.

    `TarryError` if the data cannot be used: damaged, of a newer format, of another broker.
    """
    log = logs.open(METADATA_DIRECTORY, b"", LogConfig({"retention_ms": -1}), None)
    logs.settle()
    store = EmbeddedStore(log, snapshot_bytes_min)
    store.replay()
    state = store.state
    if not state.cluster_id:
        created = ClusterCreated(cluster_id=id_text(random_id(random)))
        _append_now(store, [created, BrokerRegistered(broker_id=broker_id)], now_wall_ms)
    elif broker_id not in state.broker_ids:
        raise InvalidSetting(
            f"node.id={broker_id}: the data belongs to broker {state.broker_ids[0]}; write "
            f"node.id={state.broker_ids[0]} or choose another log.dirs"
        )
    elif not logs.was_clean:
        _append_now(store, [BrokerStartedUncleanly(broker_id=broker_id)], now_wall_ms)
    if store.is_snapshot_due():
        store.append_snapshot(now_wall_ms)
        _flush_now(store)
    return store


def _append_now(store: EmbeddedStore, records: list[MetadataRecord], now_wall_ms: int) -> None:
    store.append(records, now_wall_ms)
    _flush_now(store)


def _flush_now(store: EmbeddedStore) -> None:
    """Write, flush and apply what is appended, waiting for the disk."""
    log = store.log
    log.write()
    files: list[LogFile] = []
    directories: dict[str, None] = {}
    offset = log.collect_flush(files, directories)
    log.disk.flush(files, list(directories))
    log.flushed(offset)
    store.flushed(offset)
