"""The leader's side of replication: which replicas are in sync, and up to where records count.

The rules are in `partition/followers`; this module applies them to lives, rows and time.  Changes
of the replicas in sync are proposed to the store, those of one turn together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.part import Part, Parts
from tarry.broker.replication.fetch_sessions import ReplicaSessions
from tarry.cluster.decisions.isr_changes import ISR_CHANGES_PER_TRANSACTION, ChangeIsr, IsrWish
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.records import LifeChanged, LifeEnded, MetadataRecord
from tarry.cluster.state.state import SERVING
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore
from tarry.partition.followers import FetchClock, Follower
from tarry.partition.leadership import LeaderDoor, Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.replication")

# Interval between looks at the partitions that have a replica out of sync.
LOOK_MS: Final = 1_000
# Interval between looks for led partitions that another broker may lead by now.
REST_LOOK_MS: Final = 100


class _Door(LeaderDoor):
    """Door of a broker that has a lease; it is called for each write."""

    def __init__(self, on_written: Callable[[ReplicatedLog], None]) -> None:
        super().__init__()
        self._on_written = on_written

    def on_written(self, log: ReplicatedLog) -> None:
        self._on_written(log)


class ReplicaLeader(Part):
    """Leader's side of replicated partitions: follower ends, the in-sync set, high watermarks.

    It tells the sessions which logs have records that followers lack.  A replica's fetch calls
    `on_fetched`.
    """

    def __init__(
        self,
        settings: Settings,
        turn: Turn,
        timer: TimingWheel,
        store: MetadataStore,
        known: KnownRows,
        *,
        parts: Parts,
        flushes: Flushes,
        sessions: ReplicaSessions,
        neighbours: Neighbours,
        lease_left_ms: Callable[[], int],
        on_start_moved: Callable[[ReplicatedLog], None],
    ) -> None:
        self._broker_id = settings.node_id
        self._turn = turn
        self._state = store.state
        self._parts = parts
        self._sessions = sessions
        self._lag_ms_max = settings.replica_lag_time_max_ms
        self._store = store
        self._known = known
        # Returns how long the lease still lasts by the own clock, in ms; 0 or less if it is over.
        self._lease_left_ms = lease_left_ms
        # Led partitions whose rows name an earlier life of this broker: its lease does not cover
        # them.
        self._unclaimed: dict[Leadership, None] = {}
        # Partitions whose waiting requests were answered because they may not act, with the time of
        # the last fetch at that moment: a later fetch may have let the partition act for a while.
        # And the real time of the next look for more of them.
        self._resting: dict[Leadership, int] = {}
        self._rest_look_ms = 0
        self.door = _Door(sessions.on_news)
        self._on_start_moved = on_start_moved
        # Function that has a log's written bytes flushed, whatever the flush policy.
        self._flush = flushes.ask_for
        self._neighbours = neighbours
        # Logs that followers may not copy before the next flush.
        self._withheld: dict[ReplicatedLog, None] = {}
        self._led: dict[Leadership, None] = {}
        # Partitions whose replicas in sync may have to change.
        self._unsettled: dict[Leadership, None] = {}
        self._asked: dict[ChangeIsr, list[Leadership]] = {}
        self._under_way: dict[Leadership, None] = {}
        # Partitions whose last change may be incomplete, for the next look.
        self._again: dict[Leadership, None] = {}
        self._next_lag_ms = 0
        self._next_look_ms = 0
        self._look = Alarm(timer, turn, self._on_time)

    def begin(self, leaderships: list[Leadership]) -> None:
        """Take the replicas that are here already; none of them is led yet."""
        self._arm()
        for leadership in leaderships:
            assert not leadership.is_leader
            leadership.door = self.door

    def attend(self) -> None:
        """Read the clock at the beginning of a turn, before any request is answered."""
        door = self.door
        door.is_lease_over = self._lease_left_ms() <= 0
        door.real_ms = self._turn.monotonic_ms()
        own_epoch = self._neighbours.own_epoch()
        if door.broker_epoch != own_epoch:
            door.broker_epoch = own_epoch
            self._unclaimed = {each: None for each in self._led if not each.is_claimed()}
            self._arm()
        if not door.is_lease_over and not self._unclaimed:
            self._rest_look_ms = 0
            if self._resting:
                self._send_away()
        elif door.real_ms >= self._rest_look_ms:
            self._rest_look_ms = door.real_ms + REST_LOOK_MS
            self._send_away()

    # -- roles and lives

    def switch_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Follow the role of a replica on this broker."""
        leadership.door = self.door
        followers = leadership.followers
        if followers is None:
            self._led.pop(leadership, None)
            self._unclaimed.pop(leadership, None)
            self._unsettled.pop(leadership, None)
            for log in leadership.logs:
                self._withheld.pop(log, None)
        else:
            self._led[leadership] = None
            if leadership.is_claimed():
                self._unclaimed.pop(leadership, None)
            elif leadership not in self._unclaimed:
                self._unclaimed[leadership] = None
                self._arm()
            for log in leadership.logs:
                log.begin_epoch()
            for broker_id in followers.take_row(
                leadership.replicas,
                leadership.isr,
                leadership.row.partition_epoch,
                self._turn.now_ms,
            ):
                self._sessions.on_put_out(leadership, broker_id)
            self._recount(leadership)
        if (
            before is None
            or was_leader != leadership.is_leader
            or before.leader_epoch != leadership.leader_epoch
            or before.replicas != leadership.replicas
        ):
            for log in leadership.logs:
                self._sessions.on_news(log)
            if followers is not None:
                self._sessions.on_led(leadership, self._turn.now_ms)

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Recount the replicas in sync when lives begin or end, and when a change has ended."""
        if any(isinstance(record, LifeChanged | LifeEnded) for record in records):
            brokers = self._state.brokers
            self._sessions.keep_living({each: brokers[each].broker_epoch for each in brokers})
            for leadership in self._led:
                self._recount(leadership)
        if isinstance(change, ChangeIsr):
            self._on_ended(change)

    def on_refused(self, change: Change) -> None:
        """Ask again at the next look; an addition that may still be made counts on."""
        if isinstance(change, ChangeIsr):
            self._on_ended(change)

    def living_epoch(self, broker_id: int) -> int:
        """Return the epoch of another broker's life as it is known here; -1 if it has none."""
        broker = self._state.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    def directory_id(self, broker_id: int) -> str:
        """Return the id of the directory with which a broker is registered."""
        broker = self._state.brokers.get(broker_id)
        return "" if broker is None else broker.directory_id

    # -- fetches

    def on_fetched(
        self,
        log: ReplicatedLog,
        replica_id: int,
        broker_epoch: int,
        offset: int,
        log_start: int = -1,
        clock: FetchClock | None = None,
    ) -> None:
        """Take the offset of a follower's fetch: everything below `offset` is on its disk.

        The caller has checked that the follower is a replica in its living epoch, knows the leader
        epoch, and has a log that does not diverge.
        """
        leadership = log.leadership
        followers = leadership.followers
        follower = None if followers is None else followers.by_id.get(replica_id)
        if followers is None or follower is None:
            return
        copy = follower.copies[log.which]
        had_end, had_start = copy.end, copy.log_start
        may_have_differed = leadership.may_differ(replica_id)
        leader_end = log.log.written_end_offset
        sent_ms = -1 if clock is None else clock.fetched_real_ms  # -1: possibly old
        copy.told(broker_epoch, offset, leader_end, self._turn.now_ms, sent_ms)
        copy.log_start = log_start
        if clock is not None:
            copy.ask_in(clock)
        if replica_id in leadership.isr:
            if offset < log.high_watermark and not follower.is_lost:
                self._tell_lost(log, follower, had_end)
            if replica_id in followers.counted:
                # The high watermark of one log may have waited for the follower's end in another.
                for each in leadership.logs:
                    self._advance(each)
        else:
            self._recount(leadership)
        if log_start != had_start:
            self._on_start_moved(log)
        if may_have_differed and not leadership.may_differ(replica_id):
            # The follower receives records of each log from now on.
            for each in leadership.logs:
                self._sessions.on_news(each)

    def _tell_lost(self, log: ReplicatedLog, follower: Follower, had_end: int) -> None:
        follower.is_lost = True
        logger.error(
            "broker %d has lost records of %s: it was in sync, records below offset %d count, and "
            "it has those below %d%s; it leaves the replicas in sync; look at its disk",
            follower.broker_id,
            log.name,
            log.high_watermark,
            follower.copies[log.which].end,
            f" (it had told {had_end})" if had_end >= 0 else "",
        )
        self._unsettled[log.leadership] = None

    def must_withhold(self, log: ReplicatedLog, replica_id: int) -> bool:
        """Return whether a follower gets no records of a log for now.

        After a failed write the rest of it was cut off.  Until the cut is durable, a crash may
        bring those bytes back in place of later records of the same leader epoch, and a follower
        that had the later ones would never be seen to differ.  Or one of the two logs of the
        follower may differ: it would have a client's first try in one and the retry in the other.
        """
        if log.leadership.may_differ(replica_id):
            return True
        if not log.log.has_undurable_cut:
            return False
        if log not in self._withheld:
            self._withheld[log] = None
            self._flush(log)
        return True

    def on_moved(self, log: ReplicatedLog) -> None:
        if log in self._withheld and not log.log.has_undurable_cut:
            del self._withheld[log]
            self._sessions.on_news(log)
        leadership = log.leadership
        if log.is_closed:
            self._withheld.pop(log, None)
            self._led.pop(leadership, None)
            self._unclaimed.pop(leadership, None)
            self._unsettled.pop(leadership, None)
            self._again.pop(leadership, None)
            self._sessions.on_news(log)
        elif leadership.followers is not None:
            self._sessions.on_ends_moved(log)

    # -- replicas in sync

    def _recount(self, leadership: Leadership) -> None:
        """Recount the replicas whose ends count, and note whether the isr has to change."""
        followers = leadership.followers
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
            is_able = self._is_able(leadership, follower, epoch)
            if broker_id in leadership.isr:
                in_sync += is_able and not follower.is_lost
                must_change = must_change or not is_able or follower.is_lost
            elif is_able:
                joining.append(broker_id)
                must_change = True
        followers.in_sync = in_sync
        if followers.recount(leadership.isr, living, joining):
            # The log starts may move: a replica that has deleted records may not lead any more.
            for log in leadership.logs:
                self._on_start_moved(log)
        if must_change:
            self._unsettled[leadership] = None
        for log in leadership.logs:
            self._advance(log)

    def _advance(self, log: ReplicatedLog) -> None:
        if log.maybe_advance_high_watermark():
            self._parts.on_moved(log)

    def _look_again(self, leadership: Leadership) -> None:
        """Try all operations again that wait for a partition."""
        for log in leadership.logs:
            self._parts.on_moved(log)

    def _is_able(self, leadership: Leadership, follower: Follower, epoch: int) -> bool:
        """Return whether a follower is caught up in this life; if it is out of sync, also whether
        it serves and has reported all its ends in this life.
        """
        if epoch < 0 or not leadership.is_caught_up(follower, self._turn.now_ms, self._lag_ms_max):
            return False
        if follower.broker_id in leadership.isr:
            return True
        return (
            follower.has_told_in(epoch) and self._state.brokers[follower.broker_id].phase == SERVING
        )

    # -- changes of the replicas in sync

    def settle(self) -> None:
        """Propose the changes that this turn has shown to be needed, together."""
        if not self._unsettled:
            return
        wishes: list[IsrWish] = []
        wished: list[Leadership] = []
        unsettled, self._unsettled = self._unsettled, {}
        for leadership in unsettled:
            # A partition with a change under way is examined again when that has ended.
            wish = None if leadership in self._under_way else self._wish(leadership)
            if wish is None:
                continue
            wishes.append(wish)
            wished.append(leadership)
            if len(wishes) == ISR_CHANGES_PER_TRANSACTION:
                self._propose(wishes, wished)
                wishes, wished = [], []
        if wishes:
            self._propose(wishes, wished)

    def _wish(self, leadership: Leadership) -> IsrWish | None:
        followers = leadership.followers
        if followers is None or leadership.is_closed:
            return None
        added: dict[int, int] = {}
        removed: list[int] = []
        lost: list[int] = []
        must_write = False
        for broker_id, follower in followers.by_id.items():
            epoch = self.living_epoch(broker_id)
            is_able = self._is_able(leadership, follower, epoch)
            if broker_id in leadership.isr:
                if follower.is_lost:
                    lost.append(broker_id)
                elif not is_able:
                    removed.append(broker_id)
            elif is_able and leadership.may_join(follower):
                added[broker_id] = epoch
            elif broker_id in followers.proposed:
                # The addition may still be made.  Once the row has moved on, it cannot.
                must_write = True
        floor = leadership.floor()
        room = len(leadership.isr) + len(added) - len(lost) - floor
        if not added and not lost and not must_write and (not removed or room <= 0):
            return None
        # Dead replicas are removed first; a living one that lags may catch up.
        removed.sort(key=self.living_epoch)
        return IsrWish(
            leadership.topic_id,
            leadership.index,
            leadership.leader_epoch,
            leadership.row.partition_epoch,
            floor,
            added,
            removed,
            lost,
            must_write,
        )

    def _propose(self, wishes: list[IsrWish], wished: list[Leadership]) -> None:
        change = ChangeIsr(self._known, self._broker_id, self._neighbours.own_epoch(), wishes)
        self._asked[change] = wished
        self._under_way.update(dict.fromkeys(wished))
        for leadership, wish in zip(wished, wishes, strict=True):
            followers = leadership.followers
            assert followers is not None
            for broker_id in wish.added:
                # The added replica counts from now on, since the row may be changed at any moment.
                followers.proposed[broker_id] = wish.partition_epoch
                if broker_id not in followers.counted:
                    followers.counted.append(broker_id)
        self._store.change(change)

    def _on_ended(self, change: ChangeIsr) -> None:
        wished = self._asked.pop(change, [])
        for leadership, wish in zip(wished, change.wishes, strict=True):
            self._under_way.pop(leadership, None)
            followers = leadership.followers
            if followers is None or leadership.leader_epoch != wish.leader_epoch:
                continue
            self._again[leadership] = None
            for broker_id in wish.added:
                was_sent = (wish.topic_id, wish.partition_index, broker_id) in change.sent
                if not was_sent and followers.proposed.get(broker_id) == wish.partition_epoch:
                    # No transaction that adds the replica was ever sent.
                    del followers.proposed[broker_id]

    # -- time

    def _on_time(self) -> None:
        """Look at the replicas if it is time; the alarm also rings for the end of the lease."""
        if self._turn.now_ms >= min(self._next_look_ms, self._next_lag_ms):
            self._next_look_ms = self._turn.now_ms + LOOK_MS
            self._look_at_all()
        self._arm()

    def _look_at_all(self) -> None:
        """Look at partitions out of sync; after half of the allowed lag look at all partitions."""
        now_ms = self._turn.now_ms
        if now_ms >= self._next_lag_ms:
            self._next_lag_ms = now_ms + self._lag_ms_max // 2
            looked_at = list(self._led)
        else:
            brokers = self._state.brokers
            living = {each for each in brokers if brokers[each].broker_epoch >= 0}
            looked_at = [
                leadership
                for leadership in self._led
                if leadership in self._again or _may_grow(leadership, living)
            ]
        self._again.clear()
        for leadership in looked_at:
            self._recount(leadership)

    def _send_away(self) -> None:
        """Answer requests that wait for partitions on which this broker may not act any more."""
        before, self._resting = self._resting, {}
        for leadership in self._led if self.door.is_lease_over else self._unclaimed:
            if leadership.may_act():
                continue
            followers = leadership.followers
            fetched_ms = -1 if followers is None else followers.last_fetch_real_ms()
            self._resting[leadership] = fetched_ms
            if before.get(leadership) != fetched_ms:
                self._look_again(leadership)
        for leadership in before:
            if leadership not in self._resting:
                self._look_again(leadership)

    def _arm(self) -> None:
        """Set the time of the next look: soon after the lease ends and while a partition lacks its
        claim, and after half of the allowed lag."""
        now_ms = self._turn.now_ms
        left_ms = self._lease_left_ms()
        wait_ms = min(LOOK_MS, left_ms) if left_ms > 0 else REST_LOOK_MS
        if self._unclaimed:
            wait_ms = min(wait_ms, REST_LOOK_MS)
        if self._next_lag_ms > now_ms:
            wait_ms = min(wait_ms, self._next_lag_ms - now_ms)
        self._look.arm(wait_ms)

    def has_work_left(self) -> bool:
        return len(self._unsettled) > 0


def _may_grow(leadership: Leadership, living: set[int]) -> bool:
    """Return whether a living replica is out of sync; a dead one cannot catch up."""
    isr = leadership.isr
    if len(isr) == len(leadership.replicas):
        return False
    return any(each in living and each not in isr for each in leadership.replicas)
