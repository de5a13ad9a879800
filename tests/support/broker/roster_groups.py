"""Rosters: a whole kind of groups that only the tests know.

A roster is a list of names.  Enroll adds a name and is answered once the record with all names is
durable; without a name it closes the roster.  All that a new kind of groups needs is here: its
record, its state, its decisions, its request with handler and route.  The one line for the table
of kinds is `ServedKind(ROSTERS, roster_routes)`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from tarry.base import errors
from tarry.base.doors import Random
from tarry.broker.access import OPEN
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.delayed.long_answers import LongAnswers
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.group.decision import Append, Decision, Moment, refused
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer
from tarry.group.state import GroupKind, GroupState
from tarry.group.views import DescribedGroup, DescribedMember
from tarry.protocol.message import Message
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

ENROLL: Final = 1_001
ROSTER_KEY: Final = 1_001
ROSTER: Final = "roster"


# --- Its record.


class Roster(GroupRecord, frozen=True):
    """All names of a roster; without any it is gone."""

    kind: ClassVar[str] = ROSTER

    names: tuple[str, ...]

    def encode(self) -> tuple[bytes, bytes | None]:
        key, value = Writer(), Writer()
        key.i16(ROSTER_KEY)
        key.string(self.group_id)
        value.string(",".join(self.names))
        return key.finish(), value.finish()

    def apply_to(self, group: RosterGroup) -> None:
        group.names = self.names


class RosterClosed(GroupRecord, frozen=True):
    """The roster is gone."""

    kind: ClassVar[str] = ROSTER
    is_tombstone: ClassVar[bool] = True

    def encode(self) -> tuple[bytes, bytes | None]:
        return Roster(self.group_id, ()).encode()[0], None

    def apply_to(self, group: RosterGroup) -> None:
        group.names = ()


def decode(reader: Reader, value: bytes | None) -> GroupRecord:
    group_id = reader.string()
    if value is None:
        return RosterClosed(group_id)
    return Roster(group_id, tuple(Reader(value).string().split(",")))


# --- Its state and its decisions.


class RosterGroup(GroupState):
    """A roster."""

    def __init__(self, kind: GroupKind[RosterGroup], group_id: str) -> None:
        super().__init__(kind, group_id)
        self.names: tuple[str, ...] = ()

    def is_vacant(self) -> bool:
        return not self.names

    def is_empty(self) -> bool:
        return not self.names

    def state_name(self) -> str:
        return "Open" if self.names else "Empty"

    def commit_error(self, member_id: str, instance_id: str | None, epoch: int) -> int:
        return errors.NONE if member_id in self.names else errors.UNKNOWN_MEMBER_ID


class RosterKind(GroupKind[RosterGroup]):
    """The kind of rosters."""

    def new_group(self, group_id: str) -> RosterGroup:
        return RosterGroup(self, group_id)

    def tombstones(self, group: RosterGroup) -> list[GroupRecord]:
        return [RosterClosed(group.group_id)]

    def described(self, group: RosterGroup) -> DescribedGroup:
        members = tuple(DescribedMember(each, None, "", "", b"", b"") for each in group.names)
        return DescribedGroup(group.group_id, group.state_name(), ROSTER, "", members)


ROSTERS: Final = RosterKind(ROSTER, {ROSTER_KEY: decode}, ())


def decide_enroll(group: RosterGroup, name: str, ticket: int, moment: Moment) -> Decision:
    """A name for the roster, or its end."""
    if not name and not group.names:
        return refused(moment.now_ms, Answer(ticket, errors.GROUP_ID_NOT_FOUND))
    record = Roster(group.group_id, (*group.names, name)) if name else RosterClosed(group.group_id)
    decision = Decision(moment.now_ms)
    decision.append = Append([record], Answer(ticket))
    return decision


# --- Its request.


class EnrollRequest(Message):
    """Add a name to a roster; without a name, close it."""

    def __init__(self, group_id: str, name: str) -> None:
        self.group_id = group_id
        self.name = name

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.name)


def decode_enroll_request(reader: Reader, version: int) -> EnrollRequest:
    return EnrollRequest(reader.string(), reader.string())


class EnrollResponse(Message):
    """How it went."""

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code

    def encode(self, writer: Writer, version: int) -> None:
        writer.i16(self.error_code)


class AskedEnroll(Asked[Answer]):
    """An Enroll that waits for its record."""

    def answer(self, answer: Answer) -> None:
        self.context.respond(EnrollResponse(answer.error_code))

    def refuse(self, error_code: int) -> None:
        self.context.respond(EnrollResponse(error_code))


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: EnrollRequest
) -> Message | None:
    """Decide now; the answer comes when the record is durable."""
    shard, error_code = coordinator.find_named(request.group_id)
    group = None if shard is None else shard.groups.of_kind(ROSTERS, request.group_id)
    if shard is None or group is None:
        return EnrollResponse(error_code or errors.INCONSISTENT_GROUP_PROTOCOL)
    ticket = coordinator.ticket(AskedEnroll(context))
    decision = decide_enroll(group, request.name, ticket, coordinator.moment())
    shard.carry_out(group, decision)
    return None


def roster_routes(
    long_answers: LongAnswers, groups: GroupCoordinator, random: Random
) -> list[Route[Any]]:
    """The one route."""
    return [Route(ENROLL, 0, 0, OPEN, decode_enroll_request, partial(handle, groups))]
