"""Followers of a partition as its leader knows them: how much each has, since when, in which life.

Rules, of the paper on clusters:

* H: the high watermark is the least *flushed* end over the applied isr, additions that were
  proposed, and living replicas that are caught up and about to join; it rests while fewer are in
  sync than the floor.
* J: a replica may join if its end is not below the high watermark nor below the start of the
  leader epoch: a new leader's high watermark may lag behind what was committed.  Nor may its log
  begin before the leader's.
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


class Follower:
    """Replica that follows."""

    def __init__(self, broker_id: int, caught_up_ms: int) -> None:
        self.broker_id = broker_id
        # The life in which it told its end.
        self.broker_epoch = -1
        # Everything below is on its disk.
        self.end = NOT_TOLD
        self.log_start = NOT_TOLD
        # Attended time when it last had all that the leader had; -1: not in this leader epoch.
        self.caught_up_ms = caught_up_ms
        # The real monotonic clock of the last fetch that named the partition.
        self.fetched_real_ms = -1
        # The last fetch that named the partition: when, and the leader's end then.
        self._asked_ms = -1
        self._asked_end = -1
        # The session that keeps asking; it has nothing to be told while `has_news` is false.
        self.clock: FetchClock | None = None
        self.has_news = False
        # It has lost what it had told to be on its disk.
        self.is_lost = False

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
        """Count what this session asks as asked for this partition too."""
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


class Followers:
    """Followers of one leader in one leader epoch."""

    def __init__(self, own_id: int, epoch_start: int) -> None:
        self.own_id = own_id
        self.epoch_start = epoch_start
        self.by_id: dict[int, Follower] = {}
        # Whose ends count for the high watermark, the leader's own not among them.
        self.counted: list[int] = []
        # Additions proposed, by the partition epoch of the row that they were to follow.  The deed
        # of one that is unknown may come as long as the row has not moved on.
        self.proposed: dict[int, int] = {}
        # Who is in sync by the last row.
        self._isr: list[int] = []
        # How many live and are in sync and caught up, the leader among them.
        self.in_sync = 1
        # Whose logs must have begun later before deleted records count as deleted.
        self.keepers: list[int] = []

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
                known = Follower(broker_id, now_ms if broker_id in isr else -1)
            if broker_id not in isr:
                known.is_lost = False
                if broker_id in self._isr:
                    known.catch_up_anew()
                    put_out.append(broker_id)
            by_id[broker_id] = known
        self.by_id = by_id
        self._isr = isr
        for broker_id, before in list(self.proposed.items()):
            if partition_epoch > before:
                del self.proposed[broker_id]
        return put_out

    def count_at_least(self, isr: list[int]) -> None:
        """Count these too from now on, until `recount` says who does."""
        for broker_id in isr:
            if broker_id != self.own_id and broker_id not in self.counted:
                self.counted.append(broker_id)

    def recount(self, isr: list[int], living: dict[int, int], joining: list[int]) -> None:
        """Take whose ends count: in sync, proposed, or about to join; `living`: their epochs."""
        counted = dict.fromkeys(isr)
        counted.update(dict.fromkeys(self.proposed))
        counted.update(dict.fromkeys(joining))
        counted.pop(self.own_id, None)
        self.counted = list(counted)
        keepers = dict.fromkeys(isr)
        keepers.update({each: None for each in self.by_id if each in living})
        keepers.pop(self.own_id, None)
        self.keepers = list(keepers)

    def high_watermark(self, own_end: int, in_sync: int, floor: int) -> int:
        """Return how far records count (H); -1 while too few are in sync, or one has not told."""
        if in_sync < floor:
            return -1
        end = own_end
        for broker_id in self.counted:
            follower = self.by_id.get(broker_id)
            if follower is None or follower.end == NOT_TOLD:
                return -1
            end = min(end, follower.end)
        return end

    def may_join(self, follower: Follower, high_watermark: int, log_start: int) -> bool:
        """Return whether a replica may be in sync (J).

        Its log must not begin before the leader's: it may lead next, and records that somebody was
        told are deleted would be there again.
        """
        end = follower.end
        if end == NOT_TOLD or end < high_watermark or end < self.epoch_start:
            return False
        return max(follower.log_start, 0) >= log_start

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

    def least_log_start(self, own_start: int) -> int:
        """Return below which offset nobody who may lead has records any more."""
        start = own_start
        for broker_id in self.keepers:
            follower = self.by_id.get(broker_id)
            start = min(start, NOT_TOLD if follower is None else follower.log_start)
        return start
