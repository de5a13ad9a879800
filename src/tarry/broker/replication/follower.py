"""The follower's side of replication: it fetches the partitions that other brokers lead.

An answer is taken in parts, one for each partition, so that an error of one harms no other.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.part import Part
from tarry.broker.replication import divergence
from tarry.broker.replication.followed import FETCHING, SETTLING, Followed
from tarry.broker.replication.lane import AnsweredPart, AnsweredStart, Lane
from tarry.broker.replication.placement import Placement, logger
from tarry.broker.replication.taking import copy_records, first_offset
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.messages.fetch import PartitionData
from tarry.wire.reader import Window

# Replicas that are so many bytes behind are in the other lane, so that they hold up no other.
FAR_BYTES: Final = 1 << 20
# Number of bytes of answers that are taken in one turn; a part of an answer is taken whole.
TAKEN_BYTES_PER_TURN: Final = 1 << 20

# After so many failures of the disk in a row the pauses are long: each try reads an answer of the
# leader in vain.
DISK_FAILURES_MAX: Final = 5

# Errors after which the follower waits until the rows are newer, here or at the leader.
_EXPECTED_CODES: Final = (
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_LEADER_EPOCH,
    errors.UNKNOWN_LEADER_EPOCH,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.OFFSET_NOT_AVAILABLE,
)


class ReplicaFollower(Part):
    """Part of the turn that takes the answers of leaders, and sees that they become durable."""

    def __init__(self, turn: Turn, flushes: Flushes, placement: Placement) -> None:
        self.placement = placement
        self._turn = turn
        self._flushes = flushes
        # True if a log may have been settled in this turn; and number of flush rounds that were
        # seen.
        self._must_look = False
        self._rounds_seen = -1

    # -- answers

    def _take(self, lane: Lane, part: AnsweredPart) -> None:
        """Take the part of an answer about one partition."""
        followed, position, data = part
        partition = followed.partition
        if lane.members.get(followed.key) is not followed or followed.state != FETCHING:
            return
        is_epoch = position.leader_epoch == partition.leadership.leader_epoch
        if not is_epoch or position.offset != partition.log.log_end_offset:
            lane.want(followed)
        elif data.error_code != errors.NONE:
            self._take_error(lane, followed, data.error_code)
        elif followed.must_begin_anew():
            lane.ask_start(followed)
        elif data.diverging_epoch is not None:
            diverging = data.diverging_epoch
            self._diverge(followed, diverging.epoch, diverging.end_offset)
        else:
            followed.leader_high_watermark = data.high_watermark
            followed.leader_log_start = data.log_start_offset
            self._take_records(lane, followed, data)

    def _take_error(self, lane: Lane, followed: Followed, code: int) -> None:
        if code == errors.OFFSET_OUT_OF_RANGE:
            followed.asked_start_at = -1
            lane.ask_start(followed)
            return
        reason = f"the leader, broker {followed.leader_id}, answers {errors.error_name(code)}"
        self.placement.pause(followed, reason, is_expected=code in _EXPECTED_CODES)

    def _take_records(self, lane: Lane, followed: Followed, data: PartitionData) -> None:
        window = data.records
        # Records that were read from the wire are a `Window`.
        assert window is None or isinstance(window, Window)
        partition = followed.partition
        before = partition.log.log_end_offset
        try:
            if window is not None and len(window):
                first = first_offset(followed, window)
                if 0 <= first < before:
                    followed.kept = window
                    self.placement.restart(followed, first, -1)
                    return
                if first > before and followed.must_ask_start():
                    followed.asked_start_at = before
                    lane.ask_start(followed)
                    return
                self._copy(lane, followed, window)
            else:
                followed.is_far_behind = False
        except (CorruptData, StorageError) as error:
            if partition.log.log_end_offset == before:
                self.placement.pause(followed, str(error))
                return
        if followed.state == FETCHING:
            self._go_on(followed)

    def _copy(self, lane: Lane, followed: Followed, window: Window) -> None:
        """Append records; the lane waits until they are durable."""
        partition = followed.partition
        try:
            copy_records(followed, window, self._turn)
        finally:
            if len(window) >= min(FAR_BYTES, max(self.placement.terms.partition_bytes_max, 1)):
                followed.is_far_behind = True
            elif partition.log.log_end_offset >= followed.leader_high_watermark:
                followed.is_far_behind = False
            if partition.log.has_tail:
                lane.rest(followed)
                lane.awaiting[followed] = None
                followed.state = SETTLING
                followed.appended_end = partition.log.log_end_offset
                self.placement.unsettled[followed] = None
                self._must_look = True
                self._flushes.touch(partition)

    def _go_on(self, followed: Followed) -> None:
        """Apply the leader's high watermark and log start, and fetch more."""
        followed.failures = 0
        followed.follow_high_watermark()
        self.placement.cuts.follow_start(followed)
        self.placement.place(followed)

    def _diverge(self, followed: Followed, epoch: int, leader_end: int) -> None:
        partition = followed.partition
        log = partition.log
        offset = divergence.cut_offset(
            log.leader_epochs, log.log_start_offset, log.log_end_offset, epoch, leader_end
        )
        last_epoch: int = log.leader_epochs.latest_epoch
        if not divergence.may_cut(
            offset, partition.high_watermark, last_epoch, partition.leadership.row.unclean_epoch
        ):
            self.placement.stand_still(
                followed,
                f"its leader, broker {followed.leader_id}, wants it to end at offset {offset}, "
                f"and everything below {partition.high_watermark} was promised: the leader has "
                "lost records; keep this broker's directory, and elect another leader",
            )
            return
        if offset >= log.log_end_offset:
            # The log has the leader's records; what the leader lacks are epochs without a record
            # here.
            log.forget_empty_epochs()
            if log.leader_epochs.latest_epoch < last_epoch:
                self.placement.place(followed)
            else:
                reason = f"nothing is to be cut for epoch {epoch}, and yet it diverges"
                self.placement.pause(followed, reason)
            return
        self.placement.cut(followed, offset)

    def _take_start(self, start: AnsweredStart) -> None:
        """Restart a log at the start of the leader's log, if that is behind the end of this one."""
        followed, code, start_offset, _ = start
        log = followed.partition.log
        if code != errors.NONE:
            reason = f"where its log begins the leader answers with {errors.error_name(code)}"
            self.placement.pause(followed, reason, is_expected=code in _EXPECTED_CODES)
        elif log.flaw_offset >= 0:
            logger.warning(
                "%s is damaged at offset %d: it is given up, and copied anew from offset %d on",
                followed.partition.name,
                log.flaw_offset,
                start_offset,
            )
            self._begin_anew(start)
        elif followed.must_begin_anew():
            logger.warning(
                "%s was compacted by what an unclean election may have lost: it is copied anew "
                "from offset %d on",
                followed.partition.name,
                start_offset,
            )
            self._begin_anew(start)
        elif start_offset == log.log_end_offset == followed.asked_start_at:
            self._begin_anew(start)
        elif start_offset <= log.log_end_offset and not self._may_begin_at(followed, start_offset):
            self.placement.pause(
                followed,
                f"the leader has no offset {log.log_end_offset}, and its log begins before it",
                # A compaction that was under way may have ended since, and have dropped nothing.
                is_expected=followed.precedes_unclean_election,
            )
        else:
            logger.warning(
                "%s ended at offset %d, its leader's log begins at %d: it is begun anew there",
                followed.partition.name,
                log.log_end_offset,
                start_offset,
            )
            self._begin_anew(start)

    def _begin_anew(self, start: AnsweredStart) -> None:
        self.placement.restart(start.followed, start.offset, start.leader_epoch)

    def _may_begin_at(self, followed: Followed, start_offset: int) -> bool:
        """Return whether a log without a record may restart before its end.

        It has no epoch by which a leader could find the divergence, and the log of a leader that
        was elected uncleanly may end before it.
        """
        partition = followed.partition
        log = partition.log
        return log.log_start_offset == log.log_end_offset > start_offset and divergence.may_cut(
            start_offset,
            partition.high_watermark,
            int(log.leader_epochs.latest_epoch),
            partition.leadership.row.unclean_epoch,
        )

    def _on_cut(self, followed: Followed, error: str) -> None:
        if error:
            self.placement.pause(followed, error)
            return
        # Records that were kept for the log are appended once its restart is durable.
        self._must_look = True
        self.placement.place(followed)

    # -- the turn

    def step(self) -> None:
        """Take some of the answers that have come."""
        left = TAKEN_BYTES_PER_TURN
        for lane in list(self.placement.lanes.values()):
            for start in lane.take_starts():
                self._take_start(start)
            while lane.parts and left > 0:
                part = lane.parts.popleft()
                records = part.data.records
                left -= 0 if records is None else len(records)
                self._take(lane, part)
                if not lane.parts:
                    lane.stir()
        for followed, error in self.placement.cuts.step():
            self._on_cut(followed, error)

    def settle(self) -> None:
        """Examine which logs have become durable, and send the requests that are ready."""
        if self.placement.unsettled and (
            self._must_look or self._rounds_seen != self._flushes.rounds_total
        ):
            self._must_look = False
            self._rounds_seen = self._flushes.rounds_total
            for followed in list(self.placement.unsettled):
                self._look_at(followed)
        if self.placement.stirred:
            self.placement.send()

    def _look_at(self, followed: Followed) -> None:
        log = followed.partition.log
        if log.log_end_offset < followed.appended_end:
            is_new = followed.failures < DISK_FAILURES_MAX
            self.placement.pause(
                followed, "the disk did not take what was fetched", is_expected=is_new
            )
        elif followed.is_settled:
            del self.placement.unsettled[followed]
            kept, followed.kept = followed.kept, None
            lane = self.placement.lane_of(followed)
            if kept is None or lane is None:
                self._go_on(followed)
                return
            try:
                self._copy(lane, followed, kept)
            except (CorruptData, StorageError) as failure:
                self.placement.pause(followed, str(failure))

    def on_moved(self, partition: ReplicatedLog) -> None:
        """Report the new start of a log to its leader."""
        followed = self.placement.followed.get(partition)
        if followed is not None and followed.state == FETCHING:
            self.placement.place(followed)

    def has_work_left(self) -> bool:
        if self.placement.stirred or self.placement.cuts.has_work_left():
            return True
        return any(lane.parts for lane in self.placement.lanes.values())

    def stop(self) -> None:
        """Fetch nothing more, because the broker is about to stop."""
        self.placement.stop()
