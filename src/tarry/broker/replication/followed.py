"""A followed partition: its state, and the offset from which it is fetched."""

from __future__ import annotations

from typing import Final

from tarry.broker.replication.follower_session import Position
from tarry.link.tasks import Task
from tarry.partition.replicated_log import RECORDS, LogKey, ReplicatedLog
from tarry.wire.reader import Window

# State: the leader has no life in the epoch of the row, or this broker has none; a record will
# change that.
IDLE: Final = "idle"
# State: in a lane, which fetches the partition.
FETCHING: Final = "fetching"
# State: in a lane; written records, or a cut, are not durable yet.
SETTLING: Final = "settling"
# State: in a lane, which asks for the start of the leader's log.
ASKING: Final = "asking"
# State: the log is being cut or restarted, in steps.
CUTTING: Final = "cutting"
# State: paused, and tried again after that.
PAUSED: Final = "paused"
# State: stopped until the row changes, since going on would remove acknowledged records.
STANDING: Final = "standing"


class Followed:
    """A replica here that another broker leads, until a row ends that.

    It is in one lane at most, or waits for a record (`IDLE`, `STANDING`) or for `retry`.
    """

    def __init__(self, partition: ReplicatedLog, retry: Task) -> None:
        self.partition = partition
        self.key: LogKey = partition.key
        self.state = IDLE
        # Id of the leader, and whether the lane is that of replicas that are behind; None without a
        # lane.
        self.lane_key: tuple[int, bool] | None = None
        # True if the replica moves to its leader's other lane as soon as that is free.
        self.is_joining = False
        self.leader_id = -1
        # True if the last answer was as large as an answer may be, so that much more is there.
        self.is_far_behind = False
        self.leader_high_watermark = -1
        self.leader_log_start = -1
        # Offset at which the log ends once the tail with the last answer is written.
        self.appended_end = -1
        # In the state CUTTING: the offset to cut to, or to restart at with the leader epoch that
        # begins there or before (-1: not known), and the records kept for the restart.
        self.forget_cut()
        self.kept: Window | None = None
        # End of the log at which the leader was asked for its log start because of a gap there.
        self.asked_start_at = -1
        # Leader epoch of the unclean election after which the log was started again.
        self.begun_anew_epoch = -1
        # Number of failures in a row, which lengthen the pauses.
        self.failures = 0
        # Task at the end of a pause, which tries again.
        self.retry = retry

    @property
    def is_settled(self) -> bool:
        """Return whether the log's end is as durable as it gets, so that a fetch may report it."""
        partition = self.partition
        log = partition.log
        if log.has_tail or log.has_undurable_cut:
            return False
        return partition.leader_contribution() >= log.log_end_offset

    def forget_cut(self) -> None:
        """Forget where the log was to be cut or restarted."""
        self.cut_offset = -1
        self.restart_offset = -1
        self.restart_epoch = -1

    def must_ask_start(self) -> bool:
        """Return whether the leader epoch of the leader's log start is not known here, and was not
        asked for yet."""
        log = self.partition.log
        is_empty = log.log_start_offset == log.log_end_offset
        is_known = is_empty and len(log.leader_epochs.epochs) > 0
        return not is_known and self.asked_start_at != log.log_end_offset

    def must_begin_anew(self) -> bool:
        """Return whether a companion log has to be copied again after an unclean election.

        Compaction may have dropped records in it, here or in the log it was copied from, because of
        commits that the elected replica does not have: there these records are still scheduled.
        """
        partition = self.partition
        log = partition.log
        if partition.which == RECORDS or not self.precedes_unclean_election:
            return False
        compaction = log.compaction
        has_dropped = log.has_gaps or compaction.end_offset > 0 or compaction.is_under_way
        return has_dropped and self.begun_anew_epoch < partition.leadership.row.unclean_epoch

    @property
    def precedes_unclean_election(self) -> bool:
        """Return whether the log has no record of the time after the last unclean election."""
        partition = self.partition
        latest_epoch: int = partition.log.leader_epochs.latest_epoch
        return latest_epoch < partition.leadership.row.unclean_epoch

    def position(self) -> Position:
        """Return the position from which the partition is fetched."""
        log = self.partition.log
        return Position(
            log.log_end_offset,
            self.partition.leadership.leader_epoch,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
        )

    def follow_high_watermark(self) -> None:
        """Advance the high watermark to the leader's, as far as the log reaches here."""
        partition = self.partition
        end = min(partition.leader_contribution(), self.leader_high_watermark)
        if end > partition.high_watermark:
            partition.follow_high_watermark(end)
