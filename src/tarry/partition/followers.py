"""Followers of a partition as its leader knows them: how much each has, since when, in which life.

A leadership may have several logs.  A follower is in sync for all logs together.  Each log has its
own high watermark, and a follower has its own end in each log.

Three rules:

* H, the high watermark.  It is the least *flushed* end among the leader, the replicas in sync by
  the row, the additions that the leader has proposed, and the living replicas that are caught up
  and about to join.  It stays where it is while fewer replicas are in sync than the floor.
* J, joining.  A replica may join if its end is neither below the high watermark nor below the start
  of the leader epoch; the second condition is needed because a new leader's high watermark may be
  lower than what was committed.  The replica's log must not begin before the leader's.  J has to
  hold for each log.
* An end counts only if a fetch has reported it in this leader epoch and in the follower's present
  life, and if the logs did not diverge.  The caller of `told` has checked that.  Before a follower
  has reported its end of each log, no record of any of them counts by it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

# End of a follower that has reported none in this leader epoch.
NOT_TOLD: Final = -1
# A leader whose lease may be over still acts if each other replica in sync has fetched from it
# within this time.
TURNED_TO_MS: Final = 1_500


@mypyc_attr(allow_interpreted_subclasses=True)
class FetchClock:
    """Time of a fetch session's last fetch; -1 if there was none.

    By the monotonic clock, a fetch that may have been on its way for long counts from the time of
    the answer before it.

    A fetch does not name partitions without news, so this time counts for all of the session.
    """

    def __init__(self) -> None:
        # Time of the last fetch, in attended time and by the monotonic clock.
        self.fetched_ms = -1
        self.fetched_real_ms = -1


class LogCopy:
    """Copy of one log at a follower, as the follower's fetches report it."""

    def __init__(self, caught_up_ms: int) -> None:
        # Broker epoch of the follower's life in which it reported `end`.
        self.broker_epoch = -1
        # All records below this offset are on the follower's disk.
        self.end = NOT_TOLD
        # open: the leader's side sets it, from each fetch
        self.log_start = NOT_TOLD
        # Attended time at which the follower last had all that the leader had; -1 if it never had
        # in this leader epoch.
        self.caught_up_ms = caught_up_ms
        # Time of the last fetch that named the log, by the monotonic clock.
        self.fetched_real_ms = -1
        # Attended time of the last fetch that named the log, and the leader's end at that time.
        self._asked_ms = -1
        self._asked_end = -1
        # Clock of the fetch session that asks for the log.  While `has_news` is false, each fetch
        # of the session means that the follower has all that the leader has.
        self.clock: FetchClock | None = None
        # True if the leader has more than the follower since the session's last fetch.
        # open: the session sets it when it lists the log for its next answer
        self.has_news = False

    def told(self, broker_epoch: int, end: int, leader_end: int, now_ms: int, real_ms: int) -> None:
        """Take the follower's end from a fetch, and note whether it has all that the leader has."""
        if broker_epoch != self.broker_epoch:
            self.broker_epoch = broker_epoch
            self._asked_end = -1
        self.end = end
        if end >= leader_end:
            self.caught_up_ms = now_ms
        elif 0 <= self._asked_end <= end:
            # The follower has all that the leader had at its fetch before this one.
            self.caught_up_ms = max(self.caught_up_ms, self._asked_ms)
        self._asked_ms = now_ms
        self._asked_end = leader_end
        self.fetched_real_ms = max(self.fetched_real_ms, real_ms)

    def ask_in(self, clock: FetchClock) -> None:
        """Let the fetches of this session count for this log.

        A replica that is behind has news at once in a new session.  Otherwise the first news would
        count the replica as caught up until that time.
        """
        if self.clock is not clock:
            self.has_news = self.end < self._asked_end
        self.clock = clock

    def catch_up_anew(self) -> None:
        """Count the follower as behind until it reports its end again: it has left the in-sync set.

        A follower whose disk is full, or whose log is damaged, leaves the set by itself.  Its
        earlier reports would count it as caught up, and it would be in sync again at once.
        """
        self.end = NOT_TOLD
        self.caught_up_ms = -1
        self._asked_end = -1

    def on_news(self) -> None:
        """Note that the leader has news; the follower was caught up until its last fetch."""
        clock = self.clock
        if clock is not None and not self.has_news:
            self.caught_up_ms = max(self.caught_up_ms, clock.fetched_ms)
        self.has_news = True

    def leave_session(self, clock: FetchClock) -> None:
        """Stop counting the fetches of this session for this log."""
        if self.clock is clock:
            self.on_news()
            self.fetched_real_ms = self.last_fetch_real_ms()
            self.clock = None

    def last_caught_up_ms(self) -> int:
        """Return the attended time at which the follower last had all that the leader had."""
        clock = self.clock
        if clock is None or self.has_news:
            return self.caught_up_ms
        return max(self.caught_up_ms, clock.fetched_ms)

    def last_fetch_real_ms(self) -> int:
        """Return the monotonic time of the last fetch in this leader epoch; -1: none."""
        clock = self.clock
        if clock is None or self.end == NOT_TOLD:
            return self.fetched_real_ms
        return max(self.fetched_real_ms, clock.fetched_real_ms)

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        """Return True if the follower does not lag.

        As in Kafka, a follower that has everything does not lag, however long ago it fetched.
        """
        if self.end == leader_end:
            return True
        caught_up_ms = self.last_caught_up_ms()
        return caught_up_ms >= 0 and now_ms - caught_up_ms <= lag_ms_max

    def may_join(self, high_watermark: int, epoch_start: int, log_start: int) -> bool:
        """Return True if a replica with this copy may be in sync (J).

        The replica's log must not begin before the leader's.  If the replica led next, records
        would come back although a client was told that they are deleted.
        """
        end = self.end
        if end == NOT_TOLD or end < high_watermark or end < epoch_start:
            return False
        return max(self.log_start, 0) >= log_start


class Follower:
    """Follower of a leadership, with its copy of each log."""

    def __init__(self, broker_id: int, caught_up_ms: int, log_count: int) -> None:
        self.broker_id = broker_id
        self.copies = [LogCopy(caught_up_ms) for _ in range(log_count)]
        # True if the follower has lost records of any log that it had reported as flushed.
        # open: the leader's side sets it, when a fetch shows the loss
        self.is_lost = False

    def has_told_in(self, broker_epoch: int) -> bool:
        """Return True if the follower has reported each log's end in the life of this epoch."""
        return all(copy.broker_epoch == broker_epoch for copy in self.copies)

    def has_told_all(self) -> bool:
        """Return True if the follower has reported each log's end in this leader epoch.

        Before that one of its logs may differ from the leader's, and records of another log must
        not count.  For example, the follower's companion log may still have the first try of a
        batch whose retry is in the records: if the follower led next, both would come.
        """
        return all(copy.end != NOT_TOLD for copy in self.copies)

    def last_fetch_real_ms(self) -> int:
        """Return the monotonic time of the last fetch in this leader epoch; -1: none."""
        last_ms = -1
        for copy in self.copies:
            last_ms = max(last_ms, copy.last_fetch_real_ms())
        return last_ms


class Followers:
    """Followers of one leader in one leader epoch.  `log_count` is the number of its logs."""

    def __init__(self, own_id: int, log_count: int) -> None:
        self.own_id = own_id
        self.log_count = log_count
        self.by_id: dict[int, Follower] = {}
        # Broker ids whose ends count for the high watermarks.  The leader's own is not among them.
        self.counted: list[int] = []
        # Broker id -> partition epoch of the row on which the leader proposed to add the follower
        # to the in-sync set.  While the row has that epoch the addition may still come, also if
        # its outcome is unknown.
        self.proposed: dict[int, int] = {}
        # Broker ids in sync by the last row.
        self._isr: list[int] = []
        # Number of replicas in sync that live and are caught up, the leader included.
        # open: the leader's side sets it, because it knows the lives
        self.in_sync = 1
        # Broker ids of replicas that may lead next.  Deleted records count as deleted once the logs
        # of all of these begin behind them.
        self.keepers: list[int] = []

    def add_log(self) -> None:
        """Add a log; a follower that was caught up has the allowed lag to report its end of it."""
        self.log_count += 1
        for follower in self.by_id.values():
            follower.copies.append(LogCopy(follower.copies[0].last_caught_up_ms()))

    def take_row(
        self, replicas: list[int], isr: list[int], partition_epoch: int, now_ms: int
    ) -> list[int]:
        """Take the partition's row; return the broker ids that leave the in-sync set by it.

        A new follower in sync has the allowed lag to report its end.  The reports of a follower
        that leaves the set no longer count.
        """
        put_out: list[int] = []
        by_id: dict[int, Follower] = {}
        for broker_id in replicas:
            if broker_id == self.own_id:
                continue
            known = self.by_id.get(broker_id)
            if known is None:
                known = Follower(broker_id, now_ms if broker_id in isr else -1, self.log_count)
            if broker_id not in isr:
                known.is_lost = False
                if broker_id in self._isr:
                    for copy in known.copies:
                        copy.catch_up_anew()
                    put_out.append(broker_id)
            by_id[broker_id] = known
        self.by_id = by_id
        self._isr = isr
        for broker_id, before in list(self.proposed.items()):
            if partition_epoch > before:
                del self.proposed[broker_id]
        return put_out

    def copy(self, broker_id: int, which: int) -> LogCopy | None:
        """Return a broker's copy of one log; None if the broker does not follow."""
        follower = self.by_id.get(broker_id)
        return None if follower is None else follower.copies[which]

    def count_at_least(self, isr: list[int]) -> None:
        """Let the ends of these broker ids count too, until the next `recount`."""
        for broker_id in isr:
            if broker_id != self.own_id and broker_id not in self.counted:
                self.counted.append(broker_id)

    def recount(self, isr: list[int], living: dict[int, int], joining: list[int]) -> bool:
        """Set whose ends count: the replicas in sync, proposed, or about to join (`joining`).

        `living`: the broker epoch of each living follower.  Return True if the set of replicas that
        may lead next has changed.
        """
        counted = dict.fromkeys(isr)
        counted.update(dict.fromkeys(self.proposed))
        counted.update(dict.fromkeys(joining))
        counted.pop(self.own_id, None)
        self.counted = list(counted)
        keepers = dict.fromkeys(isr)
        keepers.update({each: None for each in self.by_id if each in living})
        keepers.pop(self.own_id, None)
        before, self.keepers = self.keepers, list(keepers)
        return self.keepers != before

    def high_watermark(self, which: int, own_end: int, in_sync: int, floor: int) -> int:
        """Return the high watermark of a log (H); -1 if too few replicas are in sync, or if one of
        them has not reported its ends.
        """
        if in_sync < floor:
            return -1
        end = own_end
        for broker_id in self.counted:
            follower = self.by_id.get(broker_id)
            if follower is None or not follower.has_told_all():
                return -1
            copy = follower.copies[which]
            end = min(end, copy.end)
        return end

    def have_turned_to_us(self, isr: list[int], real_ms: int) -> bool:
        """Return True if each other replica in sync has fetched here within TURNED_TO_MS."""
        for broker_id in isr:
            if broker_id == self.own_id:
                continue
            follower = self.by_id.get(broker_id)
            if follower is None:
                return False
            fetched_ms = follower.last_fetch_real_ms()
            if fetched_ms < 0 or real_ms - fetched_ms > TURNED_TO_MS:
                return False
        return True

    def last_fetch_real_ms(self) -> int:
        """Return the monotonic time of the last fetch of any follower; -1 if there was none."""
        last_ms = -1
        for follower in self.by_id.values():
            last_ms = max(last_ms, follower.last_fetch_real_ms())
        return last_ms

    def least_log_start(self, which: int, own_start: int) -> int:
        """Return the offset below which no replica that may lead next has records of a log."""
        start = own_start
        for broker_id in self.keepers:
            copy = self.copy(broker_id, which)
            start = min(start, NOT_TOLD if copy is None else copy.log_start)
        return start
