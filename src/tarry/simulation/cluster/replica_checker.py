"""Checker of replicas: looks at the logs of a broker after each of its turns, and at etcd's rows.

What is committed stays: once a leader's high watermark has passed a batch, every replica in sync
has it flushed (I1), and every later leader has it.  An offset in a leader epoch names one batch,
on every disk (I2), written by one broker in one life.  No replica cuts its log below what it knew
to be committed, nor loses what it has reported as flushed.  A leader has all epochs in its index,
since followers and clients ask it where they ended.

Records that a client deleted stay deleted under each leader.  An unclean election may lose only
what the elected replica does not have on its disk: from then on the log of that replica counts.

Disks are read without the brokers' own code, so that a look changes nothing.  Logs that are
compacted are left out, unless no log of the run is long enough for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tarry.base.ids import id_from_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.state import ClusterState, is_reassigned
from tarry.log.log import Log
from tarry.log.state import EMPTYING, GIVING_UP
from tarry.partition.replicated_log import RECORDS, ReplicatedLog, key_of, wire_index
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.committed import CommittedBatches, Place, are_alike
from tarry.simulation.cluster.disk_log import DiskBatch, DiskLog
from tarry.simulation.cluster.dropped import CompanionDrops
from tarry.simulation.cluster.etcd_node import EtcdNode

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

VIOLATIONS_MAX: Final = 20


class ReplicaChecker(NodeObserver):
    """Observer of all brokers of one world.  `violations` has a sentence for each broken rule."""

    def __init__(self, etcd_node: EtcdNode, prefix: str = "/simulated/") -> None:
        self.violations: list[str] = []
        # True if no log of this run is ever compacted: logs with compaction are checked as others.
        self.looks_at_compacted = False
        # True if replicas are moved: a new replica is compared with no earlier log of its broker.
        self.replicas_move = False
        self._replicas: dict[tuple[int, Place], tuple[int, ReplicatedLog]] = {}
        # Called when a follower has cut its log, and for each batch that is found in a log.
        self.on_cut: Callable[[ClusterNode], None] = _hear_nothing
        self.on_batch: Callable[[ClusterNode, ReplicatedLog, DiskBatch], None] = _hear_nothing
        self._committed: dict[Place, CommittedBatches] = {}
        self._drops: dict[Place, CompanionDrops] = {}
        self._etcd = etcd_node.etcd
        self._keys = Keys(prefix)
        self._known = KnownRows(self._keys)
        self.state = ClusterState()
        self._revision = 0
        self._logs: dict[tuple[int, Place], DiskLog] = {}
        self._taken_away: dict[tuple[int, Place], None] = {}
        # By place, leader epoch and base offset: the batch, and the broker that had it first.
        self._named: dict[tuple[Place, int, int], tuple[bytes, int]] = {}
        # Partition by the bytes of each batch: no two batches of a run are alike.
        self._written_to: dict[bytes, Place] = {}
        # By place and leader epoch: the leader's id and its life.
        self._leaders: dict[tuple[Place, int], tuple[int, int]] = {}
        self._names: dict[Place, str] = {}
        # Brokers with a new disk, which leave the replicas in sync before they serve.
        self.new_disks: dict[int, None] = {}
        # Counts of what has happened, so that a test knows that something did.
        self.compared = 0
        self.lacking = 0
        self.cuts = 0
        self.unclean_elections = 0

    # --- Moments.

    def after_turn(self, node: BrokerNode) -> None:
        """Look at what the turn has changed."""
        assert isinstance(node, ClusterNode)
        broker = node.broker
        if broker is None:
            return
        if node.is_ready:
            self.new_disks.pop(node.broker_id, None)
        if self.replicas_move:
            self._forget_gone(node, broker)
        places: dict[Place, None] = {}
        if self._etcd.revision != self._revision:
            self._read_rows()
            places.update(dict.fromkeys(self._committed))
        for partition in broker.topics.logs():
            is_compacted = partition.config.has_compaction and not self.looks_at_compacted
            log = partition.log
            # A log that is given up loses its files step by step, committed ones too.
            if is_compacted or log.flaw_offset >= 0 or log.cut.state in (GIVING_UP, EMPTYING):
                continue
            place = (partition.key[0], wire_index(partition.key))
            self._names[place] = partition.name
            if self._look(node, partition, place):
                places[place] = None
        for place in places:
            self._check_in_sync(place)

    def _forget_gone(self, node: ClusterNode, broker: Broker) -> None:
        """Forget the logs of replicas that were taken away, or that came back in this life."""
        for key in [key for key in self._logs if key[0] == node.broker_id]:
            hosted = broker.topics.with_id(key[1][0])
            replica = None if hosted is None else hosted.log(*key_of(*key[1])[1:])
            before = self._replicas.pop(key, None)
            if replica is not None:
                self._replicas[key] = node.life, replica
            is_new = before is not None and before[0] == node.life and before[1] is not replica
            if replica is None or is_new:
                del self._logs[key]

    def forget_disk(self, node: ClusterNode) -> None:
        """Expect nothing of this node any more: it got an empty disk."""
        for key in [key for key in self._logs if key[0] == node.broker_id]:
            del self._logs[key]
        self.new_disks[node.broker_id] = None

    def note_deletion(self, place: Place, low_watermark: int) -> None:
        """Note that a client was told that records below this offset are deleted."""
        committed = self._committed_of(place)
        committed.deleted_end = max(committed.deleted_end, low_watermark)

    def has_lost(self, place: Place, offset: int) -> bool:
        """Return whether an unclean election may have lost what lay at this offset."""
        lost = self._committed_of(place).lost
        return any(first <= offset < end for first, end in lost)

    def was_unclean(self, place: Place) -> bool:
        """Return whether this partition has had an unclean election."""
        return self._committed_of(place).unclean_epoch >= 0

    def _committed_of(self, place: Place) -> CommittedBatches:
        return self._committed.setdefault(place, CommittedBatches())

    def _read_rows(self) -> None:
        self._revision = self._etcd.revision
        for record in self._known.apply(self._known.difference(self._etcd.rows(self._keys.prefix))):
            self.state.apply(record)
        for key, row in [(key, self.row(key[1])) for key in self._logs]:
            if row is None or key[0] not in row.replicas:
                self._taken_away[key] = None
        for place, committed in self._committed.items():
            row = self.row(place)
            if row is not None and row.unclean_epoch > committed.unclean_epoch:
                committed.unclean_epoch = row.unclean_epoch
                committed.is_in_doubt = True
                self.unclean_elections += 1

    def place(self, key: bytes) -> Place:
        """Return the partition whose row has this key."""
        _kind, topic_id, index = self._keys.place(key)
        return id_from_text(topic_id), int(index)

    def row(self, place: Place) -> PartitionRow | None:
        """Return the partition's row as etcd has it."""
        topic_id, index, _which = key_of(*place)
        topic = self.state.topic_by_id(topic_id)
        if topic is None or index >= len(topic.partitions):
            return None
        return topic.partitions[index]

    # --- One replica.

    def _look(self, node: ClusterNode, partition: ReplicatedLog, place: Place) -> bool:
        """Compare one replica with what is known; True if more is committed now."""
        log = partition.log
        key = (node.broker_id, place)
        seen = self._logs.get(key)
        if seen is None or seen.log is not log:
            seen = self._begin(node, key, log, seen)
        elif log.log_start_offset > seen.end_offset:
            # The log began again behind its old end.
            self._logs[key] = seen = DiskLog(log)
        if log.written_end_offset < seen.end_offset:
            self._cut(node, partition, place, seen)
        if log.written_end_offset > seen.end_offset:
            for batch in seen.read(node.disk):
                self._take(node, place, batch)
                self.on_batch(node, partition, batch)
            if seen.is_newly_mixed(node.disk) and not partition.leadership.is_leader:
                # A leader may do so after a failed write: no other broker has seen those bytes.
                self._violate(place, f"is written at {node.name} behind a cut that is not durable")
        if seen.has_unseen_cut and not log.has_tail and not log.is_being_cut:
            seen.has_unseen_cut = False
            self._check_producers(node, partition, place)
        seen.was_following = not partition.leadership.is_leader
        seen.start_offset = int(log.log_start_offset)
        seen.flushed_offset = int(log.flushed_offset)
        seen.high_watermark = max(seen.high_watermark, partition.high_watermark)
        if not partition.leadership.is_leader:
            if partition.high_watermark > max(seen.flushed_offset, seen.start_offset):
                self._violate(
                    place,
                    f"counts up to {partition.high_watermark} at {node.name}, which has flushed up "
                    f"to {seen.flushed_offset}",
                )
            return False
        return self._look_at_leader(node, partition, place, seen)

    def _begin(
        self, node: ClusterNode, key: tuple[int, Place], log: Log, before: DiskLog | None
    ) -> DiskLog:
        """Begin with a log that was opened; check that it has what was flushed before."""
        seen = DiskLog(log)
        self._logs[key] = seen
        if key in self._taken_away:
            row = self.row(key[1])
            if row is not None and key[0] in row.replicas:
                del self._taken_away[key]
            return seen
        if before is not None and log.log_start_offset <= before.start_offset:
            # A log that had no batches may begin again at any offset.
            if before.batches and log.log_end_offset < before.flushed_offset:
                self._violate(
                    key[1],
                    f"ends at {log.log_end_offset} after a start of {node.name}, and was flushed "
                    f"up to {before.flushed_offset}",
                )
            seen.high_watermark = min(before.high_watermark, before.flushed_offset)
        return seen

    def _cut(
        self, node: ClusterNode, partition: ReplicatedLog, place: Place, seen: DiskLog
    ) -> None:
        end_offset = int(partition.log.written_end_offset)
        is_unclean = seen.last_epoch < self._committed_of(place).unclean_epoch
        # A log that had no batches may begin again at any offset.
        if seen.batches and end_offset < seen.high_watermark and not is_unclean:
            self._violate(
                place,
                f"is cut to {end_offset} by {node.name}, which knew {seen.high_watermark} to be "
                "committed",
            )
        seen.cut(end_offset)
        seen.has_unseen_cut = True
        self.cuts += 1
        self.on_cut(node)

    def _check_producers(self, node: ClusterNode, partition: ReplicatedLog, place: Place) -> None:
        """Check that the producers' state names no batch that was cut with the log."""
        end_offset = partition.log.written_end_offset
        for producer_id, batch in partition.producers.kept_batches():
            if batch.last_offset >= end_offset:
                self._violate(
                    place,
                    f"ends at {end_offset} at {node.name}, which knows a batch of producer "
                    f"{producer_id} up to {batch.last_offset}",
                )

    def _take(self, node: ClusterNode, place: Place, batch: DiskBatch) -> None:
        self.compared += 1
        name = (place, batch.leader_epoch, batch.base_offset)
        # A retry may go to the log of records though its first try was parked in the companion log.
        topic_id, index, which = key_of(*place)
        written_to = self._written_to.setdefault(batch.data, (topic_id, index))
        # Notes of two companion logs may be equal.
        if written_to != (topic_id, index) and which == RECORDS:
            self._violate(
                place,
                f"has a batch at offset {batch.base_offset} at {node.name} that was written to "
                f"{self._names.get(written_to)}, another topic",
            )
        first = self._named.setdefault(name, (batch.data, node.broker_id))
        if first[0] != batch.data:
            self._violate(
                place,
                f"has two batches at offset {batch.base_offset} of leader epoch "
                f"{batch.leader_epoch}: of b{first[1]} and of {node.name}",
            )

    # --- Leaders.

    def _look_at_leader(
        self, node: ClusterNode, partition: ReplicatedLog, place: Place, seen: DiskLog
    ) -> bool:
        epoch = partition.leadership.leader_epoch
        life = (node.broker_id, partition.leadership.leader_broker_epoch)
        first = self._leaders.setdefault((place, epoch), life)
        if first != life:
            self._violate(
                place,
                f"is led in leader epoch {epoch} by b{life[0]} in life {life[1]}, and was by "
                f"b{first[0]} in life {first[1]}",
            )
        committed = self._committed_of(place)
        if committed.is_in_doubt and epoch >= committed.unclean_epoch:
            self._begin_after_unclean_election(committed, seen)
        if epoch > seen.leader_epoch:
            seen.leader_epoch = epoch
            self._check_has_committed(
                place, seen, f"its leader {node.name} of epoch {epoch}", before_epoch=epoch
            )
        self._check_epoch_index(node, partition, place)
        return self._commit(committed, partition, seen)

    def _commit(self, committed: CommittedBatches, partition: ReplicatedLog, seen: DiskLog) -> bool:
        """Note the batches that the leader's high watermark has passed; True if there are more."""
        before = committed.end_offset
        high_watermark = partition.high_watermark
        if partition.leadership.leader_epoch < committed.unclean_epoch:
            # The leader was alone in sync by its own clock, while another one was elected.
            own = {batch.base_offset: batch.data for batch in committed.batches}
            committed.lose(
                [
                    batch
                    for batch in seen.batches.values()
                    if batch.end_offset <= high_watermark
                    and own.get(batch.base_offset) != batch.data
                ]
            )
            return False
        if high_watermark <= before:
            return False
        passed = [
            batch
            for batch in reversed(seen.batches.values())
            if before < batch.end_offset <= high_watermark
        ]
        passed.reverse()
        committed.batches += passed
        committed.epochs += [partition.leadership.leader_epoch] * len(passed)
        committed.end_offset = high_watermark
        return True

    def _begin_after_unclean_election(self, committed: CommittedBatches, seen: DiskLog) -> None:
        """Count as committed only what the elected replica has on its disk."""
        committed.is_in_doubt = False
        count = 0
        for batch in committed.batches:
            own = seen.batches.get(batch.base_offset)
            is_deleted = batch.end_offset <= seen.start_offset
            is_here = own is not None and own.data == batch.data
            if not is_deleted and (not is_here or batch.end_offset > seen.flushed_offset):
                break
            count += 1
        committed.lose(committed.batches[count:])
        self._drops.clear()
        del committed.batches[count:]
        del committed.epochs[count:]
        committed.end_offset = committed.batches[-1].end_offset if count else seen.start_offset
        # The elected replica was not in sync: acknowledged deletions had not waited for it.
        committed.deleted_end = min(committed.deleted_end, seen.start_offset)
        for each in self._logs.values():
            each.verified = 0

    def _check_epoch_index(self, node: ClusterNode, partition: ReplicatedLog, place: Place) -> None:
        """Check that the index of a leader has its leader epoch as the latest one."""
        log = partition.log
        if partition.leadership.followers is None or log.has_tail or log.is_being_cut:
            return
        if log.leader_epochs.latest_epoch != partition.leadership.leader_epoch:
            self._violate(
                place,
                f"is led by {node.name} in leader epoch {partition.leadership.leader_epoch}, which "
                "its index of epochs has not",
            )

    def _check_in_sync(self, place: Place) -> None:
        """Check that every member of the row's isr has flushed all that is committed (I1)."""
        row = self.row(place)
        committed = self._committed_of(place)
        end_offset = committed.end_offset
        if row is None or committed.is_in_doubt or end_offset == 0:
            return
        for broker_id in row.isr:
            if broker_id in self.new_disks:
                continue
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
                self._check_deleted(committed, place, seen, who)

    def _check_deleted(
        self, committed: CommittedBatches, place: Place, seen: DiskLog, who: str
    ) -> None:
        """Check that a replica in sync has none of the records that were deleted for a client."""
        if seen.start_offset < committed.deleted_end:
            self._violate(
                place,
                f"is deleted up to {committed.deleted_end}, and {who} begins at "
                f"{seen.start_offset}",
            )

    def _check_has_committed(
        self, place: Place, seen: DiskLog, who: str, before_epoch: int | None = None
    ) -> None:
        """Check that a log has all committed batches.

        With `before_epoch`, batches that were committed in this epoch or later do not count: a
        broker that learns late that it leads need not have what a later leader has committed.
        """
        committed = self._committed_of(place)
        if committed.is_in_doubt:
            return
        for number in range(seen.verified, len(committed.batches)):
            batch = committed.batches[number]
            if before_epoch is not None and committed.epochs[number] >= before_epoch:
                return
            own = seen.batches.get(batch.base_offset)
            if own is None and self._may_lack(place, batch):
                continue
            if batch.base_offset >= seen.start_offset and (own is None or own.data != batch.data):
                self._violate(
                    place, f"has lost the committed batch at {batch.base_offset} at {who}"
                )
                return
            seen.verified = number + 1

    def _may_lack(self, place: Place, batch: DiskBatch) -> bool:
        """Return whether compaction of a companion log may have dropped a batch that counts."""
        topic_id, index, which = key_of(*place)
        if which == RECORDS:
            return False
        drops = self._drops.setdefault(place, CompanionDrops())
        drops.follow(self.committed(place), self.committed((topic_id, index)))
        self.lacking += 1
        return drops.may_lack(batch)

    def _violate(self, place: Place, sentence: str) -> None:
        text = f"{self._names.get(place, place)} {sentence}"
        if text not in self.violations and len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(text)

    # --- The end.

    def unhealed(self, brokers: list[Broker]) -> list[str]:
        """Return a sentence for each thing that is not well some time after the last fault."""
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
            if is_reassigned(row):
                found.append(f"{name} is reassigned still: {row}")
        deleted = self.state.deleted_topics.values()
        found += [f"{one.name} is deleted and not removed" for one in deleted]
        for broker in brokers:
            for purgatory in broker.parts.purgatories():
                if purgatory.name == "Produce" and purgatory.delayed:
                    found.append(f"{purgatory.delayed} produces wait at b{broker.broker_id}")
        return found

    def committed(self, place: Place) -> list[DiskBatch]:
        """Return all committed batches in order, also those that were deleted since."""
        return self._committed_of(place).batches

    def content(self, place: Place) -> tuple[int, list[bytes]]:
        """Return start offset and batches of a partition, at an end at which replicas are alike."""
        logs = [seen for key, seen in self._logs.items() if key[1] == place]
        start_offset = max(seen.start_offset for seen in logs)
        return start_offset, logs[0].content_from(start_offset)

    def unlike(self) -> list[str]:
        """Return a sentence for each replica that differs, at an end at which all are in sync."""
        found: list[str] = []
        for place, name in sorted(self._names.items()):
            if self.row(place) is None:
                # The topic was deleted: its replicas need not have all of it.
                continue
            logs = {key[0]: seen for key, seen in self._logs.items() if key[1] == place}
            start_offset = max(seen.start_offset for seen in logs.values())
            first = min(logs)
            for broker_id, seen in sorted(logs.items()):
                if not are_alike(seen, logs[first], start_offset, place):
                    found.append(f"{name} differs at b{first} and b{broker_id}")
        return found


def _leads(broker: Broker, place: Place) -> bool:
    key = key_of(*place)
    return any(partition.key[:2] == key[:2] for partition in broker.topics.partitions())


def _hear_nothing(*_what: object) -> None:
    """Ignore what has happened."""
