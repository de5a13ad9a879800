"""Decision about a group: what is to happen, before anything has changed.

A `Decision` is carried out in this order: `Groups.take`, then the records of `append` go to the
log's tail (its answers when they are below the high watermark), then the heartbeats, the join and
the sync operation are watched, moved or ended, then the answers are sent and the notes logged.  If
the log refuses the records, now or later, `outcomes.decide_append_failed` is the next decision.

A join deadline may be now already (an initial delay of 0): it expires in the same turn.
"""

from __future__ import annotations

from typing import Final

from tarry.group.appends import Append
from tarry.group.notes import Note
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer
from tarry.group.round import GroupRound

# Kafka's constant: a new member cannot send heartbeats while its first join waits, and may be gone;
# after so long it is told to ask again.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

# Ids given out and not used in one group; past it the oldest is forgotten, and its client, if it
# still is there, asks for another.  Guards against a client that joins in a loop.
PENDING_MEMBERS_MAX: Final = 10_000


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
    """Decision of what is to happen; nothing has changed yet.

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
        self.round: GroupRound | None = None
        self.append: Append | None = None
        # The append that this decision is about: it is on its way no more.
        self.settled: Append | None = None
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
