"""Followers of a partition as its leader knows them: how much each has, since when, in which life.

A leadership may stand over several logs.  Who is in sync is one question for all of them; how much
a follower has of a log, and how far the log's records count, is one for each log.

Rules, of the paper on clusters:

* H: the high watermark is the least *flushed* end over the applied isr, additions that were
  proposed, and living replicas that are caught up and about to join; it rests while fewer are in
  sync than the floor.
* J: a replica may join if its end is not below the high watermark nor below the start of the
  leader epoch: a new leader's high watermark may lag behind what was committed.  Nor may its log
  begin before the leader's.  It has to hold for each log.
* An end counts only if it was told in this leader epoch, in the broker's living epoch, by a fetch
  that did not diverge.  Whoever calls `told` has seen to that.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

# An end that was not told in this leader epoch.
NOT_TOLD: Final = -1
# A leader whose lease may be over acts if every other replica in sync has fetched so recently.
TURNED_TO_MS: Final = 1_500


@mypyc_attr(allow_interpreted_subclasses=True)
class FetchClock:
    """Clock of a fetch session: a fetch says nothing of the partitions that have no news."""

    def __init__(self) -> None:
        # Attended time, and the real monotonic clock.
        self.fetched_ms = -1
        self.fetched_real_ms = -1


class LogCopy:
    """Copy of one log at a follower, as far as the follower has told of it."""

    def __init__(self, caught_up_ms: int) -> None:
        # The life in which it told its end.
        self.broker_epoch = -1
        # Everything below is on its disk.
        self.end = NOT_TOLD
        # open: the leader's side is told it with each fetch
        self.log_start = NOT_TOLD
        # Attended time when it last had all that the leader had; -1: not in this leader epoch.
        self.caught_up_ms = caught_up_ms
        # The real monotonic clock of the last fetch that named the log.
        self.fetched_real_ms = -1
        # Time of the last fetch that named the log, and the leader's end at that time.
        self._asked_ms = -1
        self._asked_end = -1
        # The session that keeps asking; it has nothing to be told while `has_news` is false.
        self.clock: FetchClock | None = None
        # open: the session has put it on its list
        self.has_news = False

    def told(self, broker_epoch: int, end: int, leader_end: int, now_ms: int, real_ms: int) -> None:
        """Take the end that a fetch tells, and whether it has all that the leader has."""
        if broker_epoch != self.broker_epoch:
            self.broker_epoch = broker_epoch
            self._asked_end = -1
        self.end = end
        if end >= leader_end:
            self.caught_up_ms = now_ms
        elif 0 <= self._asked_end <= end:
            # All that the leader had when it asked the time before.
            self.caught_up_ms = max(self.caught_up_ms, self._asked_ms)
        self._asked_ms = now_ms
        self._asked_end = leader_end
        self.fetched_real_ms = real_ms

    def ask_in(self, clock: FetchClock) -> None:
        """Count what this session asks as asked for this log too.

        In a new session a replica that is behind has something to be told, so that its first news
        does not count it as caught up.
        """
        if self.clock is not clock:
            self.has_news = self.end < self._asked_end
        self.clock = clock

    def catch_up_anew(self) -> None:
        """Count it as behind until it tells that it has everything: it is not in sync any more.

        One whose disk is full, or whose log is damaged, leaves by itself.  By what it told before
        it would be held to be caught up, and be in sync again at once.
        """
        self.end = NOT_TOLD
        self.caught_up_ms = -1
        self._asked_end = -1

    def on_news(self) -> None:
        """Note that there is something that it has not: it was caught up until its last fetch."""
        clock = self.clock
        if clock is not None and not self.has_news:
            self.caught_up_ms = max(self.caught_up_ms, clock.fetched_ms)
        self.has_news = True

    def leave_session(self, clock: FetchClock) -> None:
        """Count the session's fetches no more."""
        if self.clock is clock:
            self.on_news()
            self.fetched_real_ms = self.last_fetch_real_ms()
            self.clock = None

    def last_caught_up_ms(self) -> int:
        """Return the attended time when it last had all that the leader had."""
        clock = self.clock
        if clock is None or self.has_news:
            return self.caught_up_ms
        return max(self.caught_up_ms, clock.fetched_ms)

    def last_fetch_real_ms(self) -> int:
        """Return the real monotonic time of its last fetch in this leader epoch; -1: none."""
        clock = self.clock
        if clock is None or self.end == NOT_TOLD:
            return self.fetched_real_ms
        return max(self.fetched_real_ms, clock.fetched_real_ms)

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        """Return whether it does not lag; as in Kafka who has everything lags never."""
        if self.end == leader_end:
            return True
        caught_up_ms = self.last_caught_up_ms()
        return caught_up_ms >= 0 and now_ms - caught_up_ms <= lag_ms_max

    def may_join(self, high_watermark: int, epoch_start: int, log_start: int) -> bool:
        """Return whether a replica with this copy may be in sync (J).

        Who is caught up in this leader epoch has all from before it: `is_caught_up` goes by ends
        that the leader had in it.  The rule holds without that, too.

        Its log must not begin before the leader's: it may lead next, and records that somebody was
        told are deleted would be there again.
        """
        end = self.end
        if end == NOT_TOLD or end < high_watermark or end < epoch_start:
            return False
        return max(self.log_start, 0) >= log_start


class Follower:
    """Replica that follows: a copy of each log of the leadership."""

    def __init__(self, broker_id: int, caught_up_ms: int, log_count: int) -> None:
        self.broker_id = broker_id
        self.copies = [LogCopy(caught_up_ms) for _ in range(log_count)]
        # Whether the follower has lost records of any log that it had reported as on its disk.
        # open: the leader's side hears of lives
        self.is_lost = False

    def has_told_in(self, broker_epoch: int) -> bool:
        """Return whether it has told the end of each log in this life."""
        return all(copy.broker_epoch == broker_epoch for copy in self.copies)

    def last_fetch_real_ms(self) -> int:
        """Return the real monotonic time of its last fetch in this leader epoch; -1: none."""
        last_ms = -1
        for copy in self.copies:
            last_ms = max(last_ms, copy.last_fetch_real_ms())
        return last_ms


class Followers:
    """Followers of one leader in one leader epoch, with copies of so many logs."""

    def __init__(self, own_id: int, log_count: int) -> None:
        self.own_id = own_id
        self.log_count = log_count
        self.by_id: dict[int, Follower] = {}
        # Followers whose ends count for the high watermarks, without the leader.
        self.counted: list[int] = []
        # Additions proposed, by the partition epoch of the row that they were to follow.  The deed
        # of one that is unknown may come as long as the row has not moved on.
        self.proposed: dict[int, int] = {}
        # Who is in sync by the last row.
        self._isr: list[int] = []
        # How many live and are in sync and caught up, the leader among them.
        # open: the leader's side knows which followers live
        self.in_sync = 1
        # Whose logs must have begun later before deleted records count as deleted.
        self.keepers: list[int] = []

    def add_log(self) -> None:
        """Add a log; a follower that was caught up has the allowed lag to report its end."""
        self.log_count += 1
        for follower in self.by_id.values():
            follower.copies.append(LogCopy(follower.copies[0].last_caught_up_ms()))

    def take_row(
        self, replicas: list[int], isr: list[int], partition_epoch: int, now_ms: int
    ) -> list[int]:
        """Follow the partition's row.  Who is in sync has a lag's time to say so.  Return who is
        out of sync from now on: what it told counts no more.
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
        """Return what a broker has of one of the logs; None if it does not follow."""
        follower = self.by_id.get(broker_id)
        return None if follower is None else follower.copies[which]

    def count_at_least(self, isr: list[int]) -> None:
        """Count these too from now on, until `recount` says who does."""
        for broker_id in isr:
            if broker_id != self.own_id and broker_id not in self.counted:
                self.counted.append(broker_id)

    def recount(self, isr: list[int], living: dict[int, int], joining: list[int]) -> bool:
        """Take whose ends count: in sync, proposed, or about to join; `living`: their epochs.

        Return whether others may lead next than before.
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
        """Return how far the records of a log count (H); -1 while too few are in sync, or one has
        not told.
        """
        if in_sync < floor:
            return -1
        end = own_end
        for broker_id in self.counted:
            copy = self.copy(broker_id, which)
            if copy is None or copy.end == NOT_TOLD:
                return -1
            end = min(end, copy.end)
        return end

    def have_turned_to_us(self, isr: list[int], real_ms: int) -> bool:
        """Return whether every other replica in sync has fetched here just now."""
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
        """Return the real monotonic time of the last fetch of any of them; -1: none."""
        last_ms = -1
        for follower in self.by_id.values():
            last_ms = max(last_ms, follower.last_fetch_real_ms())
        return last_ms

    def least_log_start(self, which: int, own_start: int) -> int:
        """Return below which offset nobody who may lead has records of a log any more."""
        start = own_start
        for broker_id in self.keepers:
            copy = self.copy(broker_id, which)
            start = min(start, NOT_TOLD if copy is None else copy.log_start)
        return start
