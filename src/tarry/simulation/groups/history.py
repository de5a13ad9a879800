"""History of groups in one run, as their members saw it: the material of the groups' checkers.

As in `history`, everything carries the turns of the broker between which it happened.  What was
delivered and not answered may have had its effect at any time until that life of the broker ended;
what was not delivered had none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.simulation.exchange import ObservedExchange

JOIN: Final = "join"
SYNC: Final = "sync"
HEARTBEAT: Final = "heartbeat"
LEAVE: Final = "leave"
COMMIT: Final = "commit"

UNKNOWN: Final = 0
ACKNOWLEDGED: Final = 1
REFUSED: Final = 2

# After every turn that was: no broker has had it.
_NEVER: Final = 1 << 62

# As the partition of a deletion: all of them, of the topic or, without one, of the group; without
# a group of all groups.
ALL: Final = -1

# Group, topic and partition: what one offset is committed for.
Register = tuple[str, str, int]


class MemberRequest:
    """Request of a member.  `error_code` -1: not answered, or not yet.

    Of a join `generation_id` is the answer's, of anything else the request's.
    """

    def __init__(self, kind: str, group: str, client: str, member_id: str) -> None:
        self.kind = kind
        self.group = group
        self.client = client
        self.member_id = member_id
        self.instance_id: str | None = None
        self.generation_id = -1
        self.session_timeout_ms = 0
        self.rebalance_timeout_ms = 0
        # The id that a join was answered with, or that this is about if it is a leave.
        self.given_id = ""
        # What a sync was answered with: the leader's word for its assignment, and the partitions.
        self.token = ""
        self.partitions: list[TopicPartition] = []
        # What a commit commits.
        self.writes: list[OffsetWrite] = []
        self.error_code = -1
        self.exchange: ObservedExchange | None = None

    @property
    def delivered_turn(self) -> int:
        """First turn that may have seen the request; -1 if it never arrived."""
        return -1 if self.exchange is None else self.exchange.delivered_turn

    @property
    def answered_turn(self) -> int:
        return -1 if self.exchange is None else self.exchange.answered_turn

    @property
    def is_accepted(self) -> bool:
        return self.error_code == errors.NONE

    @property
    def owner(self) -> str:
        """Identity that survives restarts: the instance, or else the member."""
        return self.member_id if self.instance_id is None else f"instance {self.instance_id}"


class OffsetWrite:
    """Commit of one offset, or a deletion (`mark` is "" then).

    `mark` is the text committed with the offset, unique in the run, by which a read names it.
    """

    def __init__(self, register: Register, mark: str, offset: int) -> None:
        self.register = register
        self.mark = mark
        self.offset = offset
        self.leader_epoch = -1
        self.outcome = UNKNOWN
        # A commit without a generation, which a group with members does not take.
        self.is_of_nobody = False
        # Of a deletion that follows from something else: between which turns it has its effect.
        self.sent_turn = -1
        self.end_turn = _NEVER
        self.exchange: ObservedExchange | None = None

    @property
    def is_deletion(self) -> bool:
        return self.mark == ""

    def is_of(self, register: Register) -> bool:
        """Return true for a write of this register, or a deletion of several that includes it."""
        group, topic, index = self.register
        if index != ALL:
            return self.register == register
        return group in ("", register[0]) and topic in ("", register[1])


class OffsetRead:
    """Partition in an answer to OffsetFetch; `mark` "" and offset -1: nothing is committed."""

    def __init__(
        self,
        register: Register,
        mark: str,
        offset: int,
        leader_epoch: int,
        exchange: ObservedExchange,
    ) -> None:
        self.register = register
        self.mark = mark
        self.offset = offset
        # None: the version of the answer does not say.
        self.leader_epoch: int | None = leader_epoch
        self.exchange = exchange


class GroupHistory:
    """History of one run, as far as groups are concerned."""

    def __init__(self, turn_times_ms: Sequence[int] = ()) -> None:
        self.asked: list[MemberRequest] = []
        self.writes: list[OffsetWrite] = []
        self.reads: list[OffsetRead] = []
        # By turn: how long the broker's process had been running, stops not counted.
        self.turn_times_ms = turn_times_ms
        # The last turn of each life of the broker that is over.
        self.last_turns: list[int] = []
        # Turns before which the broker's process was stopped: every session began anew.
        self.stall_turns: list[int] = []
        # By group: turns in which it ceased to exist, so that its generations begin anew.
        self.ends: dict[str, list[int]] = {}
        # After so long offsets that nobody uses are removed.
        self.retention_ms = 7 * 24 * 3_600_000
        # Members may be turned away because their group is full.
        self.has_size_limit = False

    def life_of(self, turn: int) -> int:
        """Return the number of the broker's life that had this turn, counted from 0."""
        return bisect_left(self.last_turns, turn)

    def last_turn_after(self, turn: int) -> int:
        """Return the last turn of the life that had this turn."""
        life = self.life_of(turn)
        return self.last_turns[life] if life < len(self.last_turns) else _NEVER

    def has_ended_between(self, group: str, first_turn: int, last_turn: int) -> bool:
        """Return true if the group ceased to exist in one of these turns."""
        return any(first_turn <= turn <= last_turn for turn in self.ends.get(group, ()))

    def end_of(self, write: OffsetWrite) -> int:
        """Return the last turn in which the write can have had its effect."""
        exchange = write.exchange
        if exchange is None:
            return write.end_turn
        if write.outcome == UNKNOWN or exchange.answered_turn < 0:
            return self.last_turn_after(exchange.delivered_turn)
        return exchange.answered_turn


def register_name(register: Register) -> str:
    """Name the partition and group of an offset in a sentence."""
    return f"{register[1]}-{register[2]} of group {register[0]}"
