"""What is asked of a group and what is decided about it: plain objects, no messages of the wire.

A ticket is the broker's number for a request that waits for its answer; the core keeps it and
gives it back in exactly one answer.

A `Decision` is carried out in this order: `Groups.take`, then the records of `append` go to the
log's tail (its answers when they are below the high watermark), then the heartbeats, the join and
the sync operation are watched, moved or ended, then the answers are sent and the notes logged.  If
the log refuses the records, now or later, `outcomes.decide_append_failed` is the next decision.

A join deadline may be now already (an initial delay of 0): it expires in the same turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from tarry.base import errors
from tarry.group.records import NO_LEADER_EPOCH, NO_TOPIC_ID, GroupRecord
from tarry.group.state import Protocol, Round

if TYPE_CHECKING:
    from tarry.group.appends import Append

# Kafka's "no generation" in requests of clients outside a group.
NO_GENERATION: Final = -1
# As a retention time of a commit: the broker's setting.
DEFAULT_RETENTION: Final = -1

# Kafka's constant: a new member cannot send heartbeats while its first join waits, and may be gone;
# after so long it is told to ask again.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

# Ids given out and not used in one group; past it the oldest is forgotten, and its client, if it
# still is there, asks for another.  Guards against a client that joins in a loop.
PENDING_MEMBERS_MAX: Final = 10_000


# So much of a reason Kafka's own clients send; it is kept and logged.
REASON_CHARACTERS_MAX: Final = 255


def kept_reason(reason: str | None) -> str:
    """What is kept of the reason that a client gives."""
    return (reason or "")[:REASON_CHARACTERS_MAX]


class GroupSettings(msgspec.Struct, frozen=True):
    """The settings that decisions depend on, by Kafka's keys."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000


# -- requests


class Request(msgspec.Struct, frozen=True):
    """What all requests of members have."""

    ticket: int
    member_id: str
    instance_id: str | None = None


class JoinRequest(Request, frozen=True, kw_only=True):
    """JoinGroup.  Before version 1 the rebalance time-out is the session's.

    `must_know_id`: version 4 and later, an unknown dynamic member comes back with its id.
    `may_skip_assignment`: version 9 and later, a leader can be told not to assign.
    """

    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    must_know_id: bool = True
    may_skip_assignment: bool = True
    reason: str = ""


class SyncRequest(Request, frozen=True, kw_only=True):
    """SyncGroup; the leader's brings assignments.  Before version 5 no protocol is named."""

    generation_id: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class HeartbeatRequest(Request, frozen=True, kw_only=True):
    """Heartbeat."""

    generation_id: int


class LeavingMember(msgspec.Struct, frozen=True):
    """One member of LeaveGroup; a static one may be named by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


class LeaveRequest(msgspec.Struct, frozen=True):
    """LeaveGroup; before version 3 with one member."""

    ticket: int
    members: tuple[LeavingMember, ...]


class CommitPartition(msgspec.Struct, frozen=True):
    """One partition of a commit; with an error code it was refused before it came here."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = ""
    topic_id: bytes = NO_TOPIC_ID
    error_code: int = errors.NONE


class CommitRequest(Request, frozen=True, kw_only=True):
    """OffsetCommit.  `knows_group_not_found`: version 9 and later, which name that error."""

    generation_id: int
    partitions: tuple[CommitPartition, ...]
    retention_ms: int = DEFAULT_RETENTION
    knows_group_not_found: bool = True


# -- answers


class Answer(msgspec.Struct, frozen=True):
    """The one answer to the request with this ticket."""

    ticket: int
    error_code: int = errors.NONE


class JoinedMember(msgspec.Struct, frozen=True):
    """A member as its leader is told of it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(Answer, frozen=True, kw_only=True):
    """To JoinGroup; the leader alone is told the members."""

    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncAnswer(Answer, frozen=True, kw_only=True):
    """To SyncGroup."""

    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatAnswer(Answer, frozen=True):
    """To Heartbeat."""


class LeaveAnswer(Answer, frozen=True, kw_only=True):
    """To LeaveGroup: an error code for each member, in the order of the request."""

    member_error_codes: tuple[int, ...] = ()


class CommitAnswer(Answer, frozen=True, kw_only=True):
    """To OffsetCommit: an error code for each partition; Kafka has none for the whole."""

    partition_error_codes: tuple[int, ...] = ()


class DeleteAnswer(Answer, frozen=True, kw_only=True):
    """To DeleteGroups for one group, or to OffsetDelete with a code for each partition."""

    partition_error_codes: tuple[int, ...] = ()


# -- what is to be logged, and kept for `groups why`


class Note(msgspec.Struct, frozen=True):
    """Something that an operator may ask about."""


class MemberRemoved(Note, frozen=True):
    """A member, or an id that was given out, is gone."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    reason: str
    # Since when nothing was heard of it.
    silent_ms: int
    # What comes of it, as half a sentence.
    follows: str = ""


class RebalanceBegan(Note, frozen=True):
    """Nobody may work from now on."""

    generation_id: int
    reason: str


class RoundChanged(Note, frozen=True):
    """Somebody came, went or changed while the others were rejoining already."""

    generation_id: int
    reason: str


class GenerationBegan(Note, frozen=True):
    """All who are there have joined; the leader assigns."""

    generation_id: int
    protocol_name: str
    leader_id: str
    member_count: int


class BecameStable(Note, frozen=True):
    """The assignment is durable and given out; so long the group stood still."""

    generation_id: int
    stood_ms: int


class BecameEmpty(Note, frozen=True):
    """The last member is gone."""

    generation_id: int


class AssignmentMissing(Note, frozen=True):
    """The leader forgot these members; they have an empty assignment."""

    member_ids: tuple[str, ...]


class AppendFailed(Note, frozen=True):
    """Records did not get into the log; what came of it is in the answers."""

    what: str
    error_code: int


# -- the decision


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


class Decision:
    """What is to happen; nothing has changed yet.

    `round` is the volatile part as it becomes (None: as it is).  The join and the sync operation
    of the group follow its `join_deadline_ms` and `sync_deadline_ms`: None is no operation.
    """

    __slots__ = (
        "answers",
        "append",
        "has_failed",
        "heartbeats",
        "notes",
        "now_ms",
        "round",
        "settled",
    )

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.round: Round | None = None
        self.append: Append | None = None
        # The append that this decision is about: it is on its way no more.
        self.settled: Append | None = None
        self.has_failed = False
        self.answers: list[Answer] = []
        self.heartbeats: list[HeartbeatWait] = []
        self.notes: list[Note] = []

    @property
    def records(self) -> list[GroupRecord]:
        """What goes to the log."""
        return [] if self.append is None else self.append.records


def refused(now_ms: int, answer: Answer) -> Decision:
    """Nothing but an answer."""
    decision = Decision(now_ms)
    decision.answers.append(answer)
    return decision
