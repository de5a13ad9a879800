"""Decision about a group: the changes, records and answers, before anything has changed.

A `Decision` is carried out in this order: `Groups.take`; append the records of `append` to the
log's tail (its answer follows when they are below the high watermark); watch, move or end the
heartbeat operations; send the answers and log the notes; watch or end the operations of the group's
phases.  If the log refuses the records, now or later, `state.decide_append_failed` makes the next
decision.

The deadline of a phase may be the present time (an initial delay of 0): it expires in this turn.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.group.notes import Note
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer, GroupSettings

G = TypeVar("G")

# Error of the log -> error code for the client: Kafka's table, and one code of its older
# coordinator.  Other errors go to the client as they are.
APPEND_ERRORS: Final[dict[int, int]] = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
    errors.MESSAGE_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.RECORD_LIST_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.INVALID_FETCH_SIZE: errors.UNKNOWN_SERVER_ERROR,
}


class Moment:
    """Moment of a decision, and its settings; `now_ms` is monotonic, `now_wall_ms` calendar."""

    __slots__ = ("now_ms", "now_wall_ms", "settings")

    def __init__(self, now_ms: int, now_wall_ms: int, settings: GroupSettings) -> None:
        self.now_ms = now_ms
        self.now_wall_ms = now_wall_ms
        self.settings = settings


@mypyc_attr(allow_interpreted_subclasses=True)
class Append(Generic[G]):
    """Append under way to the log, and the decisions about its outcome in a group of type G.

    The records go into one batch, unless they `can_be_split`; `what` names them for the log.  The
    request of `answer` waits for them.
    """

    what = "a change of the group"
    can_be_split = False

    def __init__(self, records: list[GroupRecord], answer: Answer | None = None) -> None:
        self.records = records
        self.answer = answer
        # True if the append has records of the group's kind, and not only of offsets.
        self.is_of_kind = True
        # True if the records are not in the log and never will be; set by `GroupState.take`.
        self.has_failed = False
        # Bytes of the metadata texts of the offsets in it.
        self.texts_size = 0

    def recorded(self, group: G, moment: Moment) -> Decision:
        """Decide what follows once the records are below the high watermark and applied."""
        decision = Decision(moment.now_ms)
        if self.answer is not None:
            decision.answers.append(self.answer)
        return decision

    def failed(self, group: G, error_code: int, moment: Moment) -> Decision:
        """Decide what follows if the records are not in the log: the state goes back."""
        decision = Decision(moment.now_ms)
        if self.answer is not None:
            decision.answers.append(self.answer.failed(error_code))
        return decision


class HeartbeatWait:
    """Change of a member's heartbeat operation: watch or move it to `deadline_ms`, or end it.

    If `deadline_ms` is None and `ends` is False, the member's own request waits here, so its
    session cannot end.  `heard_ms` is the time of a sign of life; None if there was none.
    """

    __slots__ = ("deadline_ms", "ends", "heard_ms", "member_id")

    def __init__(
        self,
        member_id: str,
        deadline_ms: int | None,
        *,
        heard_ms: int | None = None,
        ends: bool = False,
    ) -> None:
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self.heard_ms = heard_ms
        self.ends = ends


@mypyc_attr(allow_interpreted_subclasses=True)
class Decision:
    """Decision about a group, not carried out yet.

    If a kind of group has a volatile part that changes, its decisions are of a subclass that
    sets `has_moved`; then the operations of the group's phases follow.
    """

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.has_moved = False
        self.append: Append[Any] | None = None
        # The append that this decision settles, which is no longer pending.
        self.settled: Append[Any] | None = None
        self.has_failed = False
        self.answers: list[Answer] = []
        self.heartbeats: list[HeartbeatWait] = []
        self.notes: list[Note] = []

    @property
    def records(self) -> list[GroupRecord]:
        """Records to append to the log."""
        return [] if self.append is None else self.append.records


def refused(now_ms: int, answer: Answer) -> Decision:
    """Return a decision that is only an answer."""
    decision = Decision(now_ms)
    decision.answers.append(answer)
    return decision
