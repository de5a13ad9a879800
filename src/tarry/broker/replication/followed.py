"""A followed partition: what it waits for, and from where it is to be fetched."""

from __future__ import annotations

from typing import Final

from tarry.broker.replication.follower_session import Position
from tarry.link.tasks import Task
from tarry.partition.replicated_log import RECORDS, LogKey, ReplicatedLog
from tarry.wire.reader import Window

# No leader lives in the epoch of the row, or this broker itself does not: a record will tell.
IDLE: Final = "idle"
# In a lane, which asks for it.
FETCHING: Final = "fetching"
# In a lane; what is written, or a cut, is not durable yet.
SETTLING: Final = "settling"
# In a lane, which asks where the leader's log begins.
ASKING: Final = "asking"
# Being cut or begun anew, in steps.
CUTTING: Final = "cutting"
# Tried again after a pause.
PAUSED: Final = "paused"
# Until the row changes: to go on would take away what was promised.
STANDING: Final = "standing"


class Followed:
    """A replica here that another broker leads, from the row that says so to the one that ends it.

    In one lane at most, or else waiting for a record (`IDLE`, `STANDING`) or for `retry`.
    """

    def __init__(self, partition: ReplicatedLog, retry: Task) -> None:
        self.partition = partition
        self.key: LogKey = partition.key
        self.state = IDLE
        # The leader and whether it is asked in the lane of those who are behind.
        self.lane_key: tuple[int, bool] | None = None
        # Whether it goes to its leader's other lane as soon as that may ask for it.
        self.is_joining = False
        self.leader_id = -1
        # The last answer was as large as one may be: much more is there.
        self.is_far_behind = False
        self.leader_high_watermark = -1
        self.leader_log_start = -1
        # Where the log ends once the tail of the last answer is written.
        self.appended_end = -1
        # While CUTTING: where the log is to end, or to begin anew with what was kept for it.
        self.cut_offset = -1
        self.restart_offset = -1
        self.kept: Window | None = None
        # The unclean election after which the log was begun anew.
        self.begun_anew_epoch = -1
        # Failures in a row, which make its pauses longer.
        self.failures = 0
        # Alarm at the end of a pause, which tries again.
        self.retry = retry

    @property
    def is_settled(self) -> bool:
        """Return whether the log's end is as durable as it gets, so that it may be told."""
        partition = self.partition
        log = partition.log
        if log.has_tail or log.has_undurable_cut:
            return False
        return partition.leader_contribution() >= log.log_end_offset

    def must_begin_anew(self) -> bool:
        """Return whether a companion log has to be copied anew after an unclean election.

        What compaction has dropped in it, here or where it was copied from, was done by what was
        committed then.  The elected replica may not have that: then it waits there.
        """
        partition = self.partition
        log = partition.log
        unclean_epoch = partition.leadership.row.unclean_epoch
        if partition.which == RECORDS or log.leader_epochs.latest_epoch >= unclean_epoch:
            return False
        compaction = log.compaction
        has_dropped = log.has_gaps or compaction.end_offset > 0 or compaction.is_under_way
        return has_dropped and self.begun_anew_epoch < unclean_epoch

    def position(self) -> Position:
        """Return from where it is to be fetched."""
        log = self.partition.log
        return Position(
            log.log_end_offset,
            self.partition.leadership.leader_epoch,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
        )

    def follow_high_watermark(self) -> None:
        """Take the leader's high watermark as far as the log reaches here."""
        partition = self.partition
        end = min(partition.leader_contribution(), self.leader_high_watermark)
        if end > partition.high_watermark:
            partition.follow_high_watermark(end)
