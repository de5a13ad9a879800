"""Checker of what brokers believe after each turn: of their own lives, and of who is in sync.

A life that etcd has ended must be over for its broker as well.  A follower that was behind for one
and a half times `replica.lag.time.max.ms` must be in no in-sync set, as far as the floor allows.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.rows import Keys
from tarry.partition.replicated_log import ReplicatedLog
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.etcd_node import EtcdNode
from tarry.simulation.cluster.replica_checker import ReplicaChecker

# Time for the leader to write a change, beside the lag and the half of it between two looks.
_WRITE_MS_MAX: Final = 500
# A leader that had no turn for this long may look at its followers later.
_PAUSE_MS_MAX: Final = 200


class _Led:
    """Partition in one leader epoch, as its leader has written it."""

    def __init__(self, leader_epoch: int, now_ms: int) -> None:
        self.leader_epoch = leader_epoch
        # Time since which the leader may look and write without a pause.
        self.able_since_ms = now_ms
        # Written ends of the log, each with the time since which the log ended there, in ms.
        self.ends: deque[tuple[int, int]] = deque()

    def write(self, now_ms: int, end: int) -> None:
        """Note where the log ends now; a write that failed takes back what it wrote."""
        ends = self.ends
        while ends and ends[-1][1] > end:
            ends.pop()
        if not ends or ends[-1][1] < end:
            ends.append((now_ms, end))

    def behind_since_ms(self, end: int, now_ms: int) -> int:
        """Return the time since which a log with this end lacks records."""
        return next((at_ms for at_ms, led_end in self.ends if led_end > end), now_ms)

    def forget_below(self, end: int) -> None:
        """Forget the ends that every follower has reached."""
        while len(self.ends) > 1 and self.ends[0][1] <= end:
            self.ends.popleft()


class MemberChecker(NodeObserver):
    """Observer of all brokers of one world.  `violations` has a sentence for each broken rule."""

    def __init__(
        self, etcd_node: EtcdNode, checker: ReplicaChecker, prefix: str, lag_ms_max: int
    ) -> None:
        self.violations: list[str] = []
        # Number of looks that found a follower behind for longer than the lag, with an able leader.
        self.late_followers = 0
        self._etcd_node = etcd_node
        self._etcd = etcd_node.etcd
        self._keys = Keys(prefix)
        self._checker = checker
        self._lag_ms_max = lag_ms_max
        self._led: dict[tuple[int, ReplicatedLog], _Led] = {}
        self._last_turn_ms: dict[int, int] = {}

    def on_life_begins(self, node: BrokerNode) -> None:
        assert isinstance(node, ClusterNode)
        self._led = {key: led for key, led in self._led.items() if key[0] != node.broker_id}

    def after_turn(self, node: BrokerNode) -> None:
        assert isinstance(node, ClusterNode)
        broker = node.broker
        if broker is None or broker.neighbours.membership is None:
            return
        is_alive = broker.neighbours.membership.is_alive
        if is_alive:
            self._check_life(node)
        # The lag counts by the broker's own clock.
        now_ms = node.clock.own_ms
        paused_ms = now_ms - self._last_turn_ms.get(node.broker_id, now_ms)
        self._last_turn_ms[node.broker_id] = now_ms
        door = node.door
        assert door is not None
        is_heard = not (door.is_away or door.is_hindered or self._etcd_node.is_frozen)
        is_able = is_alive and paused_ms <= _PAUSE_MS_MAX and is_heard
        for partition in broker.topics.partitions():
            if partition.leadership.followers is not None:
                self._look(node, partition, now_ms, is_able=is_able)

    def _check_life(self, node: ClusterNode) -> None:
        """Check that etcd has not ended the life which the broker counts as under way."""
        assert node.broker is not None and node.broker.neighbours.membership is not None
        epoch = node.broker.neighbours.membership.own_epoch
        life = self._etcd.row(self._keys.life(node.broker_id))
        if epoch >= 0 and (life is None or life.create_revision != epoch):
            self.violations.append(
                f"{node.name} counts itself alive in life {epoch}, which etcd has ended"
            )

    def _look(
        self, node: ClusterNode, partition: ReplicatedLog, now_ms: int, *, is_able: bool
    ) -> None:
        key = (node.broker_id, partition)
        led = self._led.get(key)
        if led is None or led.leader_epoch != partition.leadership.leader_epoch:
            led = self._led[key] = _Led(partition.leadership.leader_epoch, now_ms)
        led.write(now_ms, int(partition.log.written_end_offset))
        # A leader gives followers nothing behind a cut that is not durable, so none of them lags.
        if not is_able or partition.log.has_undurable_cut:
            led.able_since_ms = now_ms
        followers = partition.leadership.followers
        assert followers is not None
        row = self._checker.row(partition.key[:2])
        least = int(partition.log.written_end_offset)
        for broker_id, follower in followers.by_id.items():
            end = follower.copies[partition.which].end
            least = min(least, end)
            since_ms = max(led.behind_since_ms(end, now_ms), led.able_since_ms)
            behind_ms = now_ms - since_ms
            if behind_ms <= self._lag_ms_max:
                continue
            self.late_followers += 1
            is_in_sync = row is not None and _may_be_put_out(row, partition, broker_id)
            if is_in_sync and behind_ms > self._lag_ms_max * 3 // 2 + _WRITE_MS_MAX:
                self.violations.append(
                    f"{partition.name} has b{broker_id} in sync, which lacks records for "
                    f"{behind_ms} ms, and the lag is {self._lag_ms_max} ms"
                )
        led.forget_below(least)


def _may_be_put_out(row: PartitionRow, partition: ReplicatedLog, broker_id: int) -> bool:
    """Return whether the leader may remove this broker from the isr and keep the floor."""
    if row.leader_epoch != partition.leadership.leader_epoch or broker_id not in row.isr:
        return False
    return len(row.isr) > partition.leadership.floor()
