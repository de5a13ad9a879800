"""Decision about a group: what is to happen, before anything has changed.

A `Decision` is carried out in this order: `Groups.take`, then the records of `append` go to the
log's tail (its answer when they are below the high watermark), then the heartbeats are watched,
moved or ended, then the answers are sent and the notes logged, and last the operations of the
group's phases are watched or ended.  If the log refuses the records, now or later,
`state.decide_append_failed` is the next decision.

A deadline of a phase may be now already (an initial delay of 0): it expires in the same turn.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.group.notes import Note
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer, GroupSettings

G = TypeVar("G")

# Error of the log, and the code that a client is told: Kafka's table, and one code of its older
# coordinator.  Other errors are told as they are.
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
    """Moment of a decision, and its settings: `now_ms` monotonic, the other calendar."""

    __slots__ = ("now_ms", "now_wall_ms", "settings")

    def __init__(self, now_ms: int, now_wall_ms: int, settings: GroupSettings) -> None:
        self.now_ms = now_ms
        self.now_wall_ms = now_wall_ms
        self.settings = settings


@mypyc_attr(allow_interpreted_subclasses=True)
class Append(Generic[G]):
    """Append on its way to the log, and what follows from its outcome in a group of type G.

    The records go into one batch, unless they `can_be_split`; `what` says in words what they hold.
    The request of `answer` waits for them.
    """

    what = "a change of the group"
    can_be_split = False

    def __init__(self, records: list[GroupRecord], answer: Answer | None = None) -> None:
        self.records = records
        self.answer = answer
        # Whether the append has records of the group's kind, not of offsets alone.
        self.is_of_kind = True
        # Set by `GroupState.take`: the records are not in the log and never will be.
        self.has_failed = False
        # Bytes of the texts of offsets in it.
        self.texts_size = 0

    def recorded(self, group: G, moment: Moment) -> Decision:
        """Decide what follows when the records are below the high watermark and applied."""
        decision = Decision(moment.now_ms)
        if self.answer is not None:
            decision.answers.append(self.answer)
        return decision

    def failed(self, group: G, error_code: int, moment: Moment) -> Decision:
        """Decide what follows when the records are not in the log: the state goes back."""
        decision = Decision(moment.now_ms)
        if self.answer is not None:
            decision.answers.append(self.answer.failed(error_code))
        return decision


class HeartbeatWait:
    """A member's heartbeat operation: watch it or move it to `deadline_ms`, or end it.

    Without a deadline and not ended, the member is known and not watched: it waits itself.
    `heard_ms` is set if it was the member that made itself heard.
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
    """Decision of what is to happen; nothing has changed yet.

    A kind of groups whose volatile part changes with a decision has a subclass for it, and sets
    `has_moved`: then the operations of the group's phases follow.
    """

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.has_moved = False
        self.append: Append[Any] | None = None
        # The append that this decision is about: it is on its way no more.
        self.settled: Append[Any] | None = None
        self.has_failed = False
        self.answers: list[Answer] = []
        self.heartbeats: list[HeartbeatWait] = []
        self.notes: list[Note] = []

    @property
    def records(self) -> list[GroupRecord]:
        """Records that go to the log."""
        return [] if self.append is None else self.append.records


def refused(now_ms: int, answer: Answer) -> Decision:
    """Make a decision that is nothing but an answer."""
    decision = Decision(now_ms)
    decision.answers.append(answer)
    return decision
