"""History of groups in one run, as their members saw it: the material of the groups' checkers.

As in `clients.history`, each entry has the turns of the broker between which it happened.  A
request that was delivered and not answered may have had its effect at any time until that life of
the broker ended; a request that was not delivered had none.
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

# Number of a turn that never comes, after all others.
_NEVER: Final = 1 << 62

# Partition number of a deletion that concerns all partitions: of its topic; with an empty topic, of
# its group; with an empty group as well, of all groups.
ALL: Final = -1

# Group, topic and partition of a committed offset.
Register = tuple[str, str, int]


class MemberRequest:
    """Request of a member.  `error_code` is -1 until there is an answer.

    `generation_id` comes from the answer to a join, and from the request otherwise.
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
        # Id in the answer to a join; of a leave, the id of the member that goes.
        self.given_id = ""
        # Token and partitions in the answer to a sync; the token names the leader's decision.
        self.token = ""
        self.partitions: list[TopicPartition] = []
        # Writes of a commit.
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
        # True for a commit without a generation, which a group with members refuses.
        self.is_of_nobody = False
        # First and last turn of the effect of a write without an exchange, such as an expiry.
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
        # None if the version of the answer has no leader epochs.
        self.leader_epoch: int | None = leader_epoch
        self.exchange = exchange


class GroupHistory:
    """History of one run, as far as groups are concerned."""

    def __init__(self, turn_times_ms: Sequence[int] = ()) -> None:
        self.asked: list[MemberRequest] = []
        self.writes: list[OffsetWrite] = []
        self.reads: list[OffsetRead] = []
        # For each turn, the time for which the broker's process had run, without its stops, in ms.
        self.turn_times_ms = turn_times_ms
        # The last turn of each life of the broker that is over.
        self.last_turns: list[int] = []
        # Turns before which the broker's process was stopped: every session began again then.
        self.stall_turns: list[int] = []
        # For each group, the turns in which it ceased to exist: its generations begin again then.
        self.ends: dict[str, list[int]] = {}
        # Time after which unused offsets are removed, in ms.
        self.retention_ms = 7 * 24 * 3_600_000
        # True if members may be refused because their group is full.
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
