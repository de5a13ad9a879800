"""Checker of partitions' rows in etcd: looks at each revision as it is written.

Each new row has to follow from the row before it and from the lives of that moment, whichever
broker wrote it and whatever that broker knew.  Rows of a deleted topic do not come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base.etcd import Removed, Row
from tarry.base.ids import id_from_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import Keys, LifeRow, decode_row
from tarry.cluster.state.state import SERVING, ClusterState, TopicState
from tarry.simulation.etcd import SimulatedEtcd

VIOLATIONS_MAX: Final = 20


class RowChecker:
    """Listener to all revisions of one etcd.  `violations` has a sentence for each broken rule.

    `new_disks`: brokers that lost their disks; they leave the isr even if too few others stay.
    """

    def __init__(self, etcd: SimulatedEtcd, prefix: str, new_disks: dict[int, None]) -> None:
        self.violations: list[str] = []
        self._new_disks = new_disks
        # True if a preferred replica may become leader while the leader before it lives.
        self.may_prefer = False
        # Count of rows that were compared with those before them.
        self.compared = 0
        self._etcd = etcd
        self._keys = Keys(prefix)
        self._known = KnownRows(self._keys)
        self._state = ClusterState()
        etcd.on_revision = self._on_revision

    def _on_revision(
        self, writer_id: int, changes: list[Row | Removed], rows_before: dict[bytes, Row]
    ) -> None:
        """Compare the rows of partitions that this revision has written with those before."""
        written: list[tuple[str, PartitionRow]] = []
        places: list[tuple[bytes, int]] = []
        for change in changes:
            kind, *rest = self._keys.place(change.key)
            if kind != "parts" or isinstance(change, Removed):
                continue
            place = (id_from_text(rest[0]), int(rest[1]))
            topic = self._state.topic_by_id(place[0])
            if self._etcd.row(self._keys.topic(place[0])) is None:
                self._violate(f"b{writer_id} writes a row of a topic that is deleted: {rest[0]}")
            elif topic is not None and place[1] < len(topic.partitions):
                written.append((f"{topic.name}-{place[1]}", topic.partitions[place[1]]))
                places.append(place)
        for record in self._known.apply(changes):
            self._state.apply(record)
        for (name, before), place in zip(written, places, strict=True):
            topic = self._state.topic_by_id(place[0])
            assert topic is not None
            after = topic.partitions[place[1]]
            self.compared += 1
            for sentence in self._wrong(writer_id, topic, before, after, rows_before):
                self._violate(f"{name} {sentence} by b{writer_id}: {before} became {after}")

    def _violate(self, sentence: str) -> None:
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(sentence)

    # --- One row.

    def _wrong(
        self,
        writer_id: int,
        topic: TopicState,
        before: PartitionRow,
        after: PartitionRow,
        rows_before: dict[bytes, Row],
    ) -> Iterator[str]:
        if after.partition_epoch != before.partition_epoch + 1:
            yield "has its partition epoch not raised by one"
        if not after.isr or not set(after.isr) <= set(after.replicas):
            yield "has nobody in sync, or one that is no replica"
        yield from self._wrong_leader(writer_id, before, after, rows_before)
        yield from self._wrong_replicas(before, after)
        for broker_id in after.isr:
            if broker_id not in before.isr and self._phase(broker_id) != SERVING:
                yield f"has b{broker_id} in sync, which does not serve,"
        yield from self._wrong_floor(topic, before, after)

    def _wrong_leader(
        self,
        writer_id: int,
        before: PartitionRow,
        after: PartitionRow,
        rows_before: dict[bytes, Row],
    ) -> Iterator[str]:
        """Yield what is wrong with the leader and its epoch."""
        is_same = (after.leader_id, after.broker_epoch) == (before.leader_id, before.broker_epoch)
        is_left = not set(before.replicas) <= set(after.replicas)
        steps = 0 if is_same and not is_left else 1
        is_unclean = after.unclean_epoch != before.unclean_epoch
        if after.leader_epoch != before.leader_epoch + steps and not is_unclean:
            yield "has its leader epoch not raised with its leader"
        if is_unclean and (after.unclean_epoch, after.isr) != (
            after.leader_epoch,
            [after.leader_id],
        ):
            yield "is elected uncleanly in another epoch than it says, or not alone"
        life = self._etcd.row(self._keys.life(after.leader_id))
        is_over = life is None or life.create_revision != after.broker_epoch
        if not is_over and after.leader_id not in after.isr:
            yield "is led from outside the replicas in sync"
        if is_same or is_unclean:
            return
        if after.leader_id not in before.isr:
            yield f"is led by b{after.leader_id}, which was not in sync,"
        if is_over:
            yield f"is led in life {after.broker_epoch} of b{after.leader_id}, which is over,"
        # Only a row that the new leader writes is a claim: others hand over, or end a reassignment.
        is_claim = writer_id == after.leader_id and before.replicas == after.replicas
        is_preferred = self.may_prefer and after.leader_id == after.replicas[0]
        last = rows_before.get(self._keys.life(before.leader_id))
        is_led = last is not None and last.create_revision == before.broker_epoch
        if is_claim and not is_preferred and is_led:
            yield f"is claimed while its leader b{before.leader_id} lives,"

    def _wrong_replicas(self, before: PartitionRow, after: PartitionRow) -> Iterator[str]:
        """Yield what is wrong with the end of a reassignment: replicas that stay are in sync."""
        if after.adding or after.removing or set(after.replicas) == set(before.replicas):
            return
        is_cancelled = after.replicas == [
            each for each in before.replicas if each not in before.adding
        ]
        if not is_cancelled and not set(after.replicas) <= set(before.isr):
            yield "has its replicas before all of them are in sync,"

    def _wrong_floor(
        self, topic: TopicState, before: PartitionRow, after: PartitionRow
    ) -> Iterator[str]:
        """Yield a sentence if fewer replicas stay in sync than the floor."""
        floor = min(int(topic.configs.get("min.insync.replicas", "1")), len(after.replicas))
        gone = [each for each in before.isr if each not in after.isr]
        if not gone or len(after.isr) >= floor or after.unclean_epoch != before.unclean_epoch:
            return
        if not any(each in self._new_disks for each in gone):
            yield f"has fewer in sync than {floor},"

    def _phase(self, broker_id: int) -> str:
        """Return the phase of a broker's life; "" if it has none."""
        key = self._keys.life(broker_id)
        row = self._etcd.row(key)
        if row is None:
            return ""
        life = decode_row("lives", key, row.value)
        assert isinstance(life, LifeRow)
        return life.phase
