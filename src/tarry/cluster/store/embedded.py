"""The embedded metadata store: a log of this broker's own, replayed at start.

The records of one change are one record batch, so a crash keeps all of them or none.  Snapshots
keep the log short: a snapshot is a batch that begins with `StateReset` and describes the whole
state.  Once it is durable, the log begins at it.  A crash before that does no harm: a replay that
meets the snapshot forgets what it has applied before.

Invariant: `state` is the log below `version`, `view` adds the changes that are not durable yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tarry.base.doors import LogFile, Random
from tarry.base.errors import CorruptData, InvalidSetting, StorageError
from tarry.base.ids import id_text, random_id
from tarry.base.turn import Turn
from tarry.cluster.state.levels import THIS_RELEASE, Release, why_not_known
from tarry.cluster.state.records import (
    BrokerRegistered,
    BrokerStartedUncleanly,
    ClusterCreated,
    MetadataRecord,
    NewerFormat,
    StateReset,
    decode_record,
    encode_record,
)
from tarry.cluster.state.state import ClusterState
from tarry.cluster.state.topic_names import METADATA_TOPIC
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.owner import LogOwner
from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records

if TYPE_CHECKING:
    from tarry.log.logs import Logs

METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"

# A replay of so many bytes, some 5,000 records, takes about a tenth of a second.
SNAPSHOT_BYTES_MIN: Final = 1024 * 1024
# A snapshot is also due only if the log is so many times as long as the last one, so that few are
# made.
SNAPSHOT_RATIO: Final = 4
# During a turn a snapshot is written only if the state has at most so many topics, partitions and
# groups with settings, which takes a few milliseconds.  A larger state is written at the next
# start.
SNAPSHOT_ITEMS_IN_TURN_MAX: Final = 1_000

# Number of bytes that a replay reads at once.  A batch may be larger: it holds what one request
# decides, up to 10,000 partitions, or a snapshot.
_READ_BYTES: Final = 1024 * 1024
_BATCH_BYTES_MAX: Final = 1 << 30

_LEADER_EPOCH: Final = 0


# Reason of a refusal that waiters of a change are given.
NOT_KEPT: Final = "the disk did not take it; nothing was changed"


class _PendingBatch:
    """A batch that is not known to be durable: a change, or a snapshot, which has no change."""

    __slots__ = ("base_offset", "change", "end_offset", "records", "snapshot_bytes")

    def __init__(self, base_offset: int, end_offset: int, records: list[MetadataRecord]) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.records = records
        self.change: Change | None = None
        # Size of the snapshot in bytes; 0 for a change.  The state has all records of a snapshot
        # already.
        self.snapshot_bytes = 0


class StoreLog(LogOwner):
    """The store as the owner of its log; the broker writes and flushes it like the logs of
    partitions.
    """

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__("cluster metadata", store.log)
        self.store = store

    def on_write_failed(self) -> None:
        self.store.drop_unwritten()

    def on_flushed(self, offset: int) -> bool:
        self.store.apply_durable(offset)
        return False


class EmbeddedStore(MetadataStore):
    """A store in a log of this broker's own; `open_store` makes one.

    The caller of `write_through` is given each request to write and flush the log.
    """

    def __init__(
        self,
        log: Log,
        turn: Turn,
        snapshot_bytes_min: int = SNAPSHOT_BYTES_MIN,
        release: Release = THIS_RELEASE,
    ) -> None:
        super().__init__(release)
        self.log = log
        self.owner = StoreLog(self)
        self._touch: Callable[[LogOwner], None] = _touch_nobody
        self.snapshot_bytes_min = snapshot_bytes_min
        self.version = log.log_start_offset
        self._turn = turn
        self._view = self.state
        self._pending: list[_PendingBatch] = []
        # Size of the last snapshot in bytes, and number of bytes appended after it.
        self._snapshot_bytes = 0
        self._bytes_since_snapshot = 0

    @property
    def view(self) -> ClusterState:
        return self._view

    def write_through(self, touch: Callable[[LogOwner], None]) -> None:
        """Let the broker's turns write and flush the log from now on."""
        self._touch = touch

    def change(self, change: Change) -> None:
        records = change.decide(self._view)
        if records:
            self._append_change(change, records)
        elif self._pending:
            # The decision rests on changes that are not durable yet, so this change ends after
            # them.
            end_offset = self._pending[-1].end_offset
            waiting = _PendingBatch(end_offset, end_offset, records)
            waiting.change = change
            self._pending.append(waiting)
        else:
            self._applied(records, change, self.version)

    def _append_change(self, change: Change, records: list[MetadataRecord]) -> None:
        try:
            self._maybe_snapshot()
            self._append_batch(records).change = change
        except StorageError:
            self._refused(change, NOT_KEPT)
            return
        self._look_ahead(records)
        self._touch(self.owner)

    def apply_durable(self, offset: int) -> None:
        """Apply the changes below `offset`, which are durable, and report that they were
        applied.
        """
        applied: list[_PendingBatch] = []
        while self._pending and self._pending[0].end_offset <= offset:
            pending = self._pending.pop(0)
            self.version = pending.end_offset
            if pending.snapshot_bytes > 0:
                self._begin_log_at(pending.base_offset, pending.snapshot_bytes)
                continue
            for record in pending.records:
                self.state.apply(record)
            applied.append(pending)
        self._rebuild_view()
        for pending in applied:
            self._applied(pending.records, pending.change, pending.end_offset)

    def drop_unwritten(self) -> None:
        """Refuse the changes that the last write has lost, and those that rest on them."""
        end_offset = self.log.log_end_offset
        lost = [pending for pending in self._pending if pending.end_offset > end_offset]
        self._pending = [pending for pending in self._pending if pending.end_offset <= end_offset]
        self._rebuild_view()
        for pending in lost:
            if pending.change is not None:
                self._refused(pending.change, NOT_KEPT)

    def _rebuild_view(self) -> None:
        self._view = self.state
        for pending in self._pending:
            self._look_ahead(pending.records)

    def _look_ahead(self, records: list[MetadataRecord]) -> None:
        """Apply records to the view that are appended and not durable yet."""
        if self._view is self.state and records:
            self._view = self.state.overlay()
        for record in records:
            self._view.apply(record)

    def _append_batch(self, records: list[MetadataRecord]) -> _PendingBatch:
        assert records
        now_wall_ms = self._turn.now_wall_ms
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
        """Return true if the log is much longer than a snapshot of the state."""
        return self._bytes_since_snapshot > max(
            self.snapshot_bytes_min, SNAPSHOT_RATIO * self._snapshot_bytes
        )

    def append_snapshot(self) -> None:
        """Append a snapshot of the whole state.  The log begins at the snapshot once it is
        durable.
        """
        assert not self._pending, "a snapshot says what is durable"
        # The snapshot begins a segment, so that the segments before it can be removed.
        if self.log.active.size > 0:
            self.log.roll()
        size_before = self.log.size_bytes
        batch = self._append_batch(self.state.snapshot())
        batch.records = []
        batch.snapshot_bytes = self.log.size_bytes - size_before

    def _maybe_snapshot(self) -> None:
        if self._pending or not self.is_snapshot_due():
            return
        state = self.state
        items = len(state.topics) + state.partition_count + len(state.group_configs)
        if items <= SNAPSHOT_ITEMS_IN_TURN_MAX:
            self.append_snapshot()

    def _begin_log_at(self, snapshot_offset: int, snapshot_bytes: int) -> None:
        self._snapshot_bytes = snapshot_bytes
        self._bytes_since_snapshot = 0
        self.log.advance_log_start_offset(snapshot_offset)

    # -- start

    def replay(self) -> None:
        """Apply all records of the log.  Only before the first turn."""
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
        self.version = offset

    def _replay_batches(self, data: bytes) -> int:
        position = 0
        end_offset = -1
        while position < len(data):
            header = decode_batch_header(data, position)
            for stored in decode_records(data, size_max=_BATCH_BYTES_MAX, position=position):
                if stored.value is None:
                    raise CorruptData(f"{METADATA_DIRECTORY} holds an empty record")
                record = decode_record(stored.value)
                if record is None:
                    continue
                if isinstance(record, StateReset):
                    self._begin_log_at(header.base_offset, header.size)
                self.state.apply(record)
            self._bytes_since_snapshot += header.size
            position += header.size
            end_offset = header.last_offset + 1
        return end_offset

    def commit_at_start(self, records: list[MetadataRecord]) -> None:
        """Make records durable and apply them before the first turn, waiting for the disk."""
        if records:
            self._append_batch(records)
        log = self.log
        log.write()
        files: list[LogFile] = []
        directories: dict[str, None] = {}
        offset = log.collect_flush(files, directories)
        log.disk.flush(files, list(directories))
        log.flushed(offset)
        self.apply_durable(offset)


def _touch_nobody(owner: LogOwner) -> None:
    """Do nothing: nobody drives the log before the first turn."""


def open_store(
    logs: Logs,
    *,
    broker_id: int,
    random: Random,
    turn: Turn,
    snapshot_bytes_min: int = SNAPSHOT_BYTES_MIN,
    release: Release = THIS_RELEASE,
) -> EmbeddedStore:
    """Open or create the store, and make durable what a start has to record.

    Raises a `TarryError` if the data is damaged, of a newer format, or of another broker.
    """
    log = logs.open(METADATA_DIRECTORY, b"", LogConfig({"retention.ms": -1}), None)
    logs.settle(is_last=False)
    store = EmbeddedStore(log, turn, snapshot_bytes_min, release)
    store.replay()
    state = store.state
    fault = why_not_known(state.feature_levels.items(), release.levels)
    if fault:
        raise NewerFormat(fault)
    if not state.cluster_id:
        created = ClusterCreated(cluster_id=id_text(random_id(random)))
        store.commit_at_start([created, BrokerRegistered(broker_id=broker_id)])
    elif broker_id not in state.broker_ids:
        raise InvalidSetting(
            f"node.id={broker_id}: the data belongs to broker {state.broker_ids[0]}; write "
            f"node.id={state.broker_ids[0]} or choose another log.dirs"
        )
    elif not logs.was_clean:
        store.commit_at_start([BrokerStartedUncleanly(broker_id=broker_id)])
    if store.is_snapshot_due():
        store.append_snapshot()
        store.commit_at_start([])
    return store
