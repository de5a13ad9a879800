"""Checker of replicas: looks at the logs of a broker after each of its turns, and at etcd's rows.

What is committed stays: once a leader's high watermark has passed a batch, every replica in sync
has it flushed (I1), and whoever leads later has it.  An offset in a leader epoch names one batch,
on every disk (I2), written by one broker in one life.  Nobody cuts below what it knew to be
committed, nor loses what it has told as flushed.

Disks are read past the brokers' own reading, so that a look changes nothing.  Logs that are
compacted are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.cluster.records import PartitionRow
from tarry.cluster.row_records import KnownRows
from tarry.cluster.rows import Keys
from tarry.cluster.state import ClusterState
from tarry.log.log import Log
from tarry.log.segment import LOG_SUFFIX
from tarry.partition.state import Partition
from tarry.records.batch import HEADER_SIZE, BatchHeader
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.etcd_node import EtcdNode

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

VIOLATIONS_MAX: Final = 20

# Topic id and index.
Place = tuple[bytes, int]


class DiskBatch:
    """Batch as it lies on a disk."""

    def __init__(self, header: BatchHeader, data: bytes) -> None:
        self.base_offset = int(header.base_offset)
        self.end_offset = int(header.last_offset) + 1
        self.leader_epoch = int(header.leader_epoch)
        self.data = data


class DiskLog:
    """Log of one replica as it was seen last: its batches by base offset, in order."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.start_offset = int(log.log_start_offset)
        self.end_offset = int(log.log_start_offset)
        self.flushed_offset = 0
        self.high_watermark = 0
        self.leader_epoch = -1
        self.batches: dict[int, DiskBatch] = {}


class ReplicaChecker(NodeObserver):
    """Observer of all brokers of one world.  `violations` has a sentence for each broken rule."""

    def __init__(self, etcd_node: EtcdNode, prefix: str = "/simulated/") -> None:
        self.violations: list[str] = []
        self.committed: dict[Place, dict[int, DiskBatch]] = {}
        self.committed_ends: dict[Place, int] = {}
        # In which leader epoch a batch was committed, by its base offset.
        self._committed_in: dict[Place, dict[int, int]] = {}
        self._etcd = etcd_node.etcd
        self._keys = Keys(prefix)
        self._known = KnownRows(self._keys)
        self.state = ClusterState()
        self._revision = 0
        self._logs: dict[tuple[int, Place], DiskLog] = {}
        # By place, leader epoch and base offset: the one batch, and who had it first.
        self._named: dict[tuple[Place, int, int], tuple[bytes, int]] = {}
        # By place and leader epoch: who led in it, in which life.
        self._leaders: dict[tuple[Place, int], tuple[int, int]] = {}
        self._names: dict[Place, str] = {}
        # Batches that were compared, so that a test knows that something was.
        self.compared = 0

    # --- Moments.

    def after_turn(self, node: BrokerNode) -> None:
        """Look at what the turn has changed."""
        assert isinstance(node, ClusterNode)
        broker = node.broker
        if broker is None:
            return
        places: dict[Place, None] = {}
        for partition in broker.topics.replicas():
            if partition.config.has_compaction or partition.log.flaw_offset >= 0:
                continue
            place = (partition.topic_id, partition.index)
            self._names[place] = partition.name
            if self._look(node, partition, place):
                places[place] = None
        if self._etcd.revision != self._revision:
            self._read_rows()
            places.update(dict.fromkeys(self.committed_ends))
        for place in places:
            self._check_in_sync(place)

    def _read_rows(self) -> None:
        self._revision = self._etcd.revision
        for record in self._known.apply(self._known.difference(self._etcd.rows(self._keys.prefix))):
            self.state.apply(record)

    def row(self, place: Place) -> PartitionRow | None:
        """Return the partition's row as etcd has it."""
        topic = self.state.topic_by_id(place[0])
        if topic is None or place[1] >= len(topic.partitions):
            return None
        return topic.partitions[place[1]]

    # --- One replica.

    def _look(self, node: ClusterNode, partition: Partition, place: Place) -> bool:
        """Compare one replica with what is known; True if more is committed now."""
        log = partition.log
        key = (node.broker_id, place)
        seen = self._logs.get(key)
        if seen is None or seen.log is not log:
            seen = self._begin(node, key, log, seen)
        elif log.log_start_offset > seen.end_offset:
            # Begun anew behind its end.
            self._logs[key] = seen = DiskLog(log)
        if log.written_end_offset < seen.end_offset:
            self._cut(node, partition, place, seen)
        if log.written_end_offset > seen.end_offset:
            self._read(node, place, seen)
        seen.start_offset = int(log.log_start_offset)
        seen.flushed_offset = int(log.flushed_offset)
        seen.high_watermark = max(seen.high_watermark, partition.high_watermark)
        if not partition.is_leader:
            return False
        return self._look_at_leader(node, partition, place, seen)

    def _begin(
        self, node: ClusterNode, key: tuple[int, Place], log: Log, before: DiskLog | None
    ) -> DiskLog:
        """Begin with a log that was opened: what was flushed before is there."""
        seen = DiskLog(log)
        self._logs[key] = seen
        if before is not None and log.log_start_offset <= before.start_offset:
            if log.log_end_offset < before.flushed_offset:
                self._violate(
                    key[1],
                    f"ends at {log.log_end_offset} after a start of {node.name}, and was flushed "
                    f"up to {before.flushed_offset}",
                )
            seen.high_watermark = min(before.high_watermark, before.flushed_offset)
        return seen

    def _cut(self, node: ClusterNode, partition: Partition, place: Place, seen: DiskLog) -> None:
        end_offset = int(partition.log.written_end_offset)
        row = self.row(place)
        is_unclean = row is not None and row.unclean_epoch >= 0
        if end_offset < seen.high_watermark and not is_unclean:
            self._violate(
                place,
                f"is cut to {end_offset} by {node.name}, which knew {seen.high_watermark} to be "
                "committed",
            )
        seen.batches = {
            base: batch for base, batch in seen.batches.items() if batch.end_offset <= end_offset
        }
        seen.end_offset = end_offset
        seen.high_watermark = min(seen.high_watermark, end_offset)

    def _read(self, node: ClusterNode, place: Place, seen: DiskLog) -> None:
        """Read what was written since the last look."""
        log = seen.log
        for segment in log.segments_from(seen.end_offset):
            content = node.disk.content(segment.path + LOG_SUFFIX)[: int(segment.written_size)]
            position = 0
            while position + HEADER_SIZE <= len(content):
                header = BatchHeader(content, position)
                if header.base_offset >= seen.end_offset:
                    data = content[position : position + int(header.size)]
                    self._take(node, place, seen, DiskBatch(header, data))
                position += int(header.size)
        seen.end_offset = int(log.written_end_offset)

    def _take(self, node: ClusterNode, place: Place, seen: DiskLog, batch: DiskBatch) -> None:
        seen.batches[batch.base_offset] = batch
        seen.end_offset = batch.end_offset
        self.compared += 1
        name = (place, batch.leader_epoch, batch.base_offset)
        first = self._named.setdefault(name, (batch.data, node.broker_id))
        if first[0] != batch.data:
            self._violate(
                place,
                f"has two batches at offset {batch.base_offset} of leader epoch "
                f"{batch.leader_epoch}: of b{first[1]} and of {node.name}",
            )

    # --- Leaders.

    def _look_at_leader(
        self, node: ClusterNode, partition: Partition, place: Place, seen: DiskLog
    ) -> bool:
        epoch = partition.leader_epoch
        life = (node.broker_id, partition.leader_broker_epoch)
        first = self._leaders.setdefault((place, epoch), life)
        if first != life:
            self._violate(
                place,
                f"is led in leader epoch {epoch} by b{life[0]} in life {life[1]}, and was by "
                f"b{first[0]} in life {first[1]}",
            )
        if epoch > seen.leader_epoch:
            seen.leader_epoch = epoch
            self._check_has_committed(
                place, seen, f"its leader {node.name} of epoch {epoch}", before_epoch=epoch
            )
        before = self.committed_ends.get(place, 0)
        high_watermark = partition.high_watermark
        if high_watermark <= before:
            return False
        committed = self.committed.setdefault(place, {})
        committed_in = self._committed_in.setdefault(place, {})
        for base, batch in seen.batches.items():
            if batch.end_offset > before and batch.end_offset <= high_watermark:
                committed[base] = batch
                committed_in[base] = epoch
        self.committed_ends[place] = high_watermark
        return True

    def _check_in_sync(self, place: Place) -> None:
        """Check that every member of the row's isr has flushed all that is committed (I1)."""
        row = self.row(place)
        end_offset = self.committed_ends.get(place, 0)
        if row is None or row.unclean_epoch >= 0 or end_offset == 0:
            return
        for broker_id in row.isr:
            seen = self._logs.get((broker_id, place))
            who = f"b{broker_id}, which is in sync,"
            if seen is None:
                self._violate(place, f"has {end_offset} offsets committed, and {who} none")
            elif seen.flushed_offset < end_offset:
                self._violate(
                    place,
                    f"is committed up to {end_offset}, and {who} has flushed up to "
                    f"{seen.flushed_offset}",
                )
            else:
                self._check_has_committed(place, seen, who)

    def _check_has_committed(
        self, place: Place, seen: DiskLog, who: str, before_epoch: int | None = None
    ) -> None:
        """Check that a log has what was committed; by leaders of earlier epochs, if one is given:
        who hears late that it leads, and another one does already, need not have what that one
        has committed.
        """
        committed_in = self._committed_in.get(place, {})
        row = self.row(place)
        if row is not None and row.unclean_epoch >= 0:
            return
        for base, batch in self.committed.get(place, {}).items():
            if base < seen.start_offset:
                continue
            if before_epoch is not None and committed_in[base] >= before_epoch:
                continue
            own = seen.batches.get(base)
            if own is None or own.data != batch.data:
                self._violate(place, f"has lost the committed batch at {base} at {who}")
                return

    def _violate(self, place: Place, sentence: str) -> None:
        text = f"{self._names.get(place, place)} {sentence}"
        if text not in self.violations and len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(text)

    # --- The end.

    def unhealed(self, brokers: list[Broker]) -> list[str]:
        """Return what is not as it has to be some time after the last fault."""
        self._read_rows()
        found: list[str] = []
        by_id = {broker.broker_id: broker for broker in brokers}
        for place in sorted(self._names):
            row = self.row(place)
            if row is None:
                continue
            name = self._names[place]
            leader = by_id.get(row.leader_id)
            if leader is None or not _leads(leader, place):
                found.append(f"{name} has no leader, though its row names b{row.leader_id}")
            if sorted(row.isr) != sorted(row.replicas):
                found.append(f"{name} has {row.isr} in sync, of {row.replicas}")
        for broker in brokers:
            for purgatory in broker.parts.purgatories():
                if purgatory.name == "Produce" and purgatory.delayed:
                    found.append(f"{purgatory.delayed} produces wait at b{broker.broker_id}")
        return found


def _leads(broker: Broker, place: Place) -> bool:
    return any(
        partition.topic_id == place[0] and partition.index == place[1]
        for partition in broker.topics.partitions()
    )
