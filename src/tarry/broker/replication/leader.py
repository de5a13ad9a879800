"""The leader's side of replication: who follows, who is in sync, and how far records count.

The rules are in `partition/followers`; here they meet lives, rows and time.  Changes of the
replicas in sync are proposed to the store, those of a turn together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from tarry.base.turn import Turn
from tarry.broker.part import Part, Parts
from tarry.cluster.change import Change
from tarry.cluster.isr_changes import ISR_CHANGES_PER_TRANSACTION, ChangeIsr, IsrWish
from tarry.cluster.records import LifeChanged, LifeEnded, MetadataRecord
from tarry.cluster.row_records import KnownRows
from tarry.cluster.state import SERVING, ClusterState
from tarry.cluster.store import MetadataStore
from tarry.partition.followers import FetchClock, Follower
from tarry.partition.role import Role
from tarry.partition.state import LeaderDoor, Partition
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.replication")

# So often partitions are looked at that have a replica out of sync.
LOOK_MS: Final = 1_000


class NewsListener(Protocol):
    """Listener to what followers have not got yet."""

    def on_news(self, partition: Partition) -> None:
        """Hear that there are records to copy, or another role."""

    def on_led(self, partition: Partition, now_ms: int) -> None:
        """Hear that this broker leads it in a new epoch."""

    def on_put_out(self, partition: Partition, replica_id: int) -> None:
        """Hear that a replica is not in sync any more: it has to tell anew what it has."""

    def on_ends_moved(self, partition: Partition) -> None:
        """Hear that the high watermark or the log start has moved."""

    def keep_living(self, living_epoch: Callable[[int], int]) -> None:
        """Hear that lives have begun or ended; `living_epoch`: of a broker's life, -1 for none."""


class _Door(LeaderDoor):
    """Door of a broker that has a lease; told of each write."""

    def __init__(self, on_written: Callable[[Partition], None]) -> None:
        super().__init__()
        self._on_written = on_written

    def on_written(self, partition: Partition) -> None:
        self._on_written(partition)


class ReplicaLeader(Part):
    """Leader of what others follow.  Without a cluster it has nothing to do."""

    def __init__(
        self,
        broker_id: int,
        turn: Turn,
        timer: TimingWheel,
        state: ClusterState,
        parts: Parts,
        lag_ms_max: int,
    ) -> None:
        self._broker_id = broker_id
        self._turn = turn
        self._timer = timer
        self._state = state
        self._parts = parts
        self._lag_ms_max = lag_ms_max
        self._store: MetadataStore | None = None
        self._known: KnownRows | None = None
        # Whether by its own clock this broker still has its lease.
        self.is_alive: Callable[[], bool] = _always
        # The life in which this broker may lead.
        self.own_epoch: Callable[[], int] = _no_epoch
        self.door = _Door(self._on_written)
        self.news: NewsListener | None = None
        self.on_start_moved: Callable[[Partition], None] = _hear_nothing
        # Has what is written of a partition flushed, whatever its policy.
        self.flush: Callable[[Partition], None] = _hear_nothing
        # Partitions of which followers get nothing before a flush.
        self._withheld: dict[Partition, None] = {}
        self._led: dict[Partition, None] = {}
        # Partitions whose replicas in sync may have to change.
        self._unsettled: dict[Partition, None] = {}
        self._asked: dict[ChangeIsr, list[Partition]] = {}
        self._under_way: dict[Partition, None] = {}
        # Partitions whose last change may not have done all, for the next look.
        self._again: dict[Partition, None] = {}
        self._next_lag_ms = 0
        self._look = _LeaderLook(self._on_time)

    def join(self, store: MetadataStore, known: KnownRows) -> None:
        """Begin as a broker of a cluster, whose rows are changed through this store."""
        self._store = store
        self._known = known
        self._arm()

    def begin(self, replicas: list[Partition]) -> None:
        """Take up the replicas that are here already; none of them is led yet."""
        for partition in replicas:
            assert not partition.is_leader
            partition.door = self.door

    def attend(self) -> None:
        """Look at the clock at the beginning of a turn, before anything is answered."""
        self.door.is_lease_over = not self.is_alive()
        self.door.real_ms = self._turn.monotonic_ms()

    # -- roles and lives

    def on_role(self, partition: Partition, before: Role | None, after: Role) -> None:
        """Follow the role of a replica here."""
        if self._store is None:
            return
        partition.door = self.door
        followers = partition.followers
        if followers is None:
            self._led.pop(partition, None)
            self._unsettled.pop(partition, None)
            self._withheld.pop(partition, None)
        else:
            self._led[partition] = None
            partition.begin_epoch()
            now_ms = self._turn.now_ms
            for broker_id in followers.take_row(
                after.replicas, after.isr, after.partition_epoch, now_ms
            ):
                if self.news is not None:
                    self.news.on_put_out(partition, broker_id)
            self._recount(partition)
        if self.news is not None and (
            before is None
            or (before.leader_epoch, before.is_leader) != (after.leader_epoch, after.is_leader)
            or before.replicas != after.replicas
        ):
            self.news.on_news(partition)
            if followers is not None:
                self.news.on_led(partition, self._turn.now_ms)

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Look again at who is in sync when lives begin or end, and when a change has ended."""
        if any(isinstance(record, LifeChanged | LifeEnded) for record in records):
            if self.news is not None:
                self.news.keep_living(self.living_epoch)
            for partition in self._led:
                self._recount(partition)
        if isinstance(change, ChangeIsr):
            self._on_ended(change)

    def on_refused(self, change: Change) -> None:
        """Ask again at the next look; what may still be done goes on counting."""
        if isinstance(change, ChangeIsr):
            self._on_ended(change)

    def living_epoch(self, broker_id: int) -> int:
        """Return the epoch of another broker's life as this broker knows it; -1: it has none."""
        broker = self._state.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    def directory_id(self, broker_id: int) -> str:
        """Return the id of the directory with which a broker is registered."""
        broker = self._state.brokers.get(broker_id)
        return "" if broker is None else broker.directory_id

    # -- fetches

    def on_fetched(
        self,
        partition: Partition,
        replica_id: int,
        broker_epoch: int,
        offset: int,
        log_start: int = -1,
        clock: FetchClock | None = None,
    ) -> None:
        """Take what the fetch of a follower tells: everything below `offset` is on its disk.

        Whoever calls has checked that it is a replica, in its living epoch, that it knows the
        leader epoch, and that its log does not diverge.
        """
        followers = partition.followers
        follower = None if followers is None else followers.by_id.get(replica_id)
        if followers is None or follower is None:
            return
        had_end, had_start = follower.end, follower.log_start
        leader_end = partition.log.written_end_offset
        real_ms = self._turn.monotonic_ms() if clock is None else clock.fetched_real_ms
        follower.told(broker_epoch, offset, leader_end, self._turn.now_ms, real_ms)
        follower.log_start = log_start
        if clock is not None:
            follower.ask_in(clock)
        if replica_id in partition.isr:
            if offset < partition.high_watermark and not follower.is_lost:
                self._tell_lost(partition, follower, had_end)
            if replica_id in followers.counted:
                self._advance(partition)
        else:
            self._recount(partition)
        if log_start != had_start:
            self.on_start_moved(partition)

    def _tell_lost(self, partition: Partition, follower: Follower, had_end: int) -> None:
        follower.is_lost = True
        logger.error(
            "broker %d has lost records of %s: it was in sync, records below offset %d count, and "
            "it has those below %d%s; it leaves the replicas in sync; look at its disk",
            follower.broker_id,
            partition.name,
            partition.high_watermark,
            follower.end,
            f" (it had told {had_end})" if had_end >= 0 else "",
        )
        self._unsettled[partition] = None

    def _on_written(self, partition: Partition) -> None:
        if self.news is not None:
            self.news.on_news(partition)

    def must_withhold(self, partition: Partition) -> bool:
        """Return whether followers get nothing for now; they hear of it when they do.

        A write has failed, and what it left was cut off.  Until that is durable a crash may bring
        those bytes back in the place of what was appended since, in the same leader epoch: a
        follower that had the latter by then would never be seen to differ.
        """
        if not partition.log.has_undurable_cut:
            return False
        if partition not in self._withheld:
            self._withheld[partition] = None
            self.flush(partition)
        return True

    def on_moved(self, partition: Partition) -> None:
        if partition in self._withheld and not partition.log.has_undurable_cut:
            del self._withheld[partition]
            self._on_written(partition)
        if partition.is_closed:
            self._withheld.pop(partition, None)
            self._led.pop(partition, None)
            self._unsettled.pop(partition, None)
            self._again.pop(partition, None)
            if self.news is not None:
                self.news.on_news(partition)
        elif self.news is not None and partition.followers is not None:
            self.news.on_ends_moved(partition)

    # -- who counts

    def _recount(self, partition: Partition) -> None:
        """Say anew whose ends count, and whether the replicas in sync have to change."""
        followers = partition.followers
        if followers is None:
            return
        living: dict[int, int] = {}
        joining: list[int] = []
        in_sync = 1
        must_change = len(followers.proposed) > 0
        for broker_id, follower in followers.by_id.items():
            epoch = self.living_epoch(broker_id)
            if epoch >= 0:
                living[broker_id] = epoch
            is_able = epoch >= 0 and self._is_caught_up(partition, follower)
            if broker_id in partition.isr:
                in_sync += is_able and not follower.is_lost
                must_change = must_change or not is_able or follower.is_lost
            elif is_able and follower.broker_epoch == epoch and self._serves(broker_id):
                joining.append(broker_id)
                must_change = True
        followers.in_sync = in_sync
        followers.recount(partition.isr, living, joining)
        if must_change:
            self._unsettled[partition] = None
        self._advance(partition)

    def _advance(self, partition: Partition) -> None:
        if partition.maybe_advance_high_watermark():
            self._parts.on_moved(partition)

    def _is_caught_up(self, partition: Partition, follower: Follower) -> bool:
        end = partition.log.written_end_offset
        return follower.is_caught_up(end, self._turn.now_ms, self._lag_ms_max)

    def _serves(self, broker_id: int) -> bool:
        broker = self._state.brokers.get(broker_id)
        return broker is not None and broker.phase == SERVING

    # -- changes of the replicas in sync

    def settle(self) -> None:
        """Propose what this turn has shown, together."""
        if not self._unsettled or self._store is None:
            return
        wishes: list[IsrWish] = []
        partitions: list[Partition] = []
        unsettled, self._unsettled = self._unsettled, {}
        for partition in unsettled:
            # One that is under way is looked at again when it has ended.
            wish = None if partition in self._under_way else self._wish(partition)
            if wish is None:
                continue
            wishes.append(wish)
            partitions.append(partition)
            if len(wishes) == ISR_CHANGES_PER_TRANSACTION:
                self._propose(wishes, partitions)
                wishes, partitions = [], []
        if wishes:
            self._propose(wishes, partitions)

    def _wish(self, partition: Partition) -> IsrWish | None:
        followers = partition.followers
        if followers is None or partition.is_closed:
            return None
        added: dict[int, int] = {}
        removed: list[int] = []
        lost: list[int] = []
        must_write = False
        for broker_id, follower in followers.by_id.items():
            epoch = self.living_epoch(broker_id)
            is_able = epoch >= 0 and self._is_caught_up(partition, follower)
            if broker_id in partition.isr:
                if follower.is_lost:
                    lost.append(broker_id)
                elif not is_able:
                    removed.append(broker_id)
                continue
            is_able = is_able and follower.broker_epoch == epoch and self._serves(broker_id)
            if is_able and followers.may_join(
                follower, partition.high_watermark, partition.log.log_start_offset
            ):
                added[broker_id] = epoch
            elif broker_id in followers.proposed:
                # The deed may still come.  Once the row has moved on it cannot.
                must_write = True
        room = len(partition.isr) + len(added) - len(lost) - partition.floor()
        if not added and not lost and not must_write and (not removed or room <= 0):
            return None
        # Who lives and lags may come back; who is dead goes first.
        removed.sort(key=self.living_epoch)
        return IsrWish(
            partition.topic_id,
            partition.index,
            partition.leader_epoch,
            partition.partition_epoch,
            partition.floor(),
            added,
            removed,
            lost,
            must_write,
        )

    def _propose(self, wishes: list[IsrWish], partitions: list[Partition]) -> None:
        assert self._store is not None
        assert self._known is not None
        change = ChangeIsr(self._known, self._broker_id, self.own_epoch(), wishes)
        self._asked[change] = partitions
        self._under_way.update(dict.fromkeys(partitions))
        for partition, wish in zip(partitions, wishes, strict=True):
            followers = partition.followers
            assert followers is not None
            for broker_id in wish.added:
                # An addition counts from now on: the deed may be done at any moment.
                followers.proposed[broker_id] = wish.partition_epoch
                if broker_id not in followers.counted:
                    followers.counted.append(broker_id)
        self._store.change(change)

    def _on_ended(self, change: ChangeIsr) -> None:
        partitions = self._asked.pop(change, [])
        for partition, wish in zip(partitions, change.wishes, strict=True):
            self._under_way.pop(partition, None)
            followers = partition.followers
            if followers is None or partition.leader_epoch != wish.leader_epoch:
                continue
            self._again[partition] = None
            for broker_id in wish.added:
                was_sent = (wish.topic_id, wish.partition_index, broker_id) in change.sent
                if not was_sent and followers.proposed.get(broker_id) == wish.partition_epoch:
                    # No deed that adds it was ever asked for.
                    del followers.proposed[broker_id]

    # -- time

    def _on_time(self) -> None:
        """Look at those out of sync; and after half of the lag that is allowed at everyone."""
        now_ms = self._turn.now_ms
        if now_ms >= self._next_lag_ms:
            self._next_lag_ms = now_ms + self._lag_ms_max // 2
            looked_at = list(self._led)
        else:
            brokers = self._state.brokers
            living = {each for each in brokers if brokers[each].broker_epoch >= 0}
            looked_at = [
                partition
                for partition in self._led
                if partition in self._again or _may_grow(partition, living)
            ]
        self._again.clear()
        for partition in looked_at:
            self._recount(partition)
        if self.door.is_lease_over:
            self._send_away()
        self._arm()

    def _send_away(self) -> None:
        """Have producers that wait look again where this broker may not act any more."""
        for partition in self._led:
            if not partition.may_act():
                self._parts.on_moved(partition)

    def _arm(self) -> None:
        self._look.deadline_ms = self._turn.now_ms + LOOK_MS
        self._timer.add(self._look)

    def has_work_left(self) -> bool:
        return len(self._unsettled) > 0


class _LeaderLook(TimerEntry):
    """Timer's entry that looks who is in sync."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__(0)
        self._do = look

    def expire(self) -> None:
        self._do()


def _may_grow(partition: Partition, living: set[int]) -> bool:
    """Return whether a replica that lives is out of sync.  Of the dead nothing new is learned."""
    isr = partition.isr
    if len(isr) == len(partition.replicas):
        return False
    return any(each in living and each not in isr for each in partition.replicas)


def _always() -> bool:
    return True


def _hear_nothing(partition: Partition) -> None:
    """Hear nothing: nobody waits for it yet."""


def _no_epoch() -> int:
    return -1
