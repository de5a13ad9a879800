"""A kind of groups that the tests add, by its package and one line in the table of kinds."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import GroupUser, Member, group_broker, stabilize
from tests.support.broker.roster_groups import (
    ENROLL,
    ROSTERS,
    EnrollRequest,
    Roster,
    roster_routes,
)

from tarry.base import errors
from tarry.broker import group_kinds
from tarry.broker.group_kinds import ServedKind
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.records import GroupMetadata, GroupTombstone
from tarry.group.loading import Loading
from tarry.group.offsets.records import OffsetCommitted
from tarry.group.records import GroupRecord
from tarry.group.state import Groups, Kinds
from tarry.simulation.by_hand import BrokerByHand

ANSWER_BYTES = 4 + 4 + 2
CREW = "crew"


class RosterUser(GroupUser):
    """A user that may also enroll."""

    def enroll(self, name: str, group: str = CREW) -> str:
        """Enroll on a connection of its own; the error's name, or `waits`."""
        client = self.hand.connect()
        client.send(ENROLL, 0, EnrollRequest(group, name))
        self.hand.settle()
        sent = self.hand.transport.sent.get(client.connection_id, b"")
        assert len(sent) in (0, ANSWER_BYTES)
        return errors.error_name(int.from_bytes(sent[8:], "big")) if sent else "waits"

    def kinds(self) -> dict[str, tuple[str, str]]:
        """Type and state of each group that is listed."""
        return {
            each.group_id: (each.group_type, each.group_state) for each in self.list_groups().groups
        }

    def names(self, group: str = CREW) -> list[str]:
        return [each.member_id for each in self.describe(group).members]


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> BrokerByHand:
    """A broker whose table of kinds has one line more."""
    served = (*group_kinds.SERVED, ServedKind(ROSTERS, roster_routes))
    monkeypatch.setattr(group_kinds, "SERVED", served)
    return group_broker()


@pytest.fixture
def user(hand: BrokerByHand) -> RosterUser:
    return RosterUser(hand)


def test_its_request_appends_its_record_which_is_loaded_again(
    hand: BrokerByHand, user: RosterUser
) -> None:
    assert user.enroll("ann") == "NONE"
    assert user.enroll("bob") == "NONE"

    hand.crash()
    hand.settle()
    again = RosterUser(hand)

    assert again.names() == ["ann", "bob"]
    assert again.enroll("cid") == "NONE"
    assert again.names() == ["ann", "bob", "cid"]


def test_it_is_listed_and_described_with_its_type(user: RosterUser) -> None:
    user.enroll("ann")
    user.commit({0: 5}, "simple")

    described = user.describe(CREW)

    assert user.kinds() == {CREW: ("roster", "Open"), "simple": ("classic", "Empty")}
    assert (described.protocol_type, described.group_state) == ("roster", "Open")


def test_the_request_is_answered_when_the_record_is_durable(
    hand: BrokerByHand, user: RosterUser
) -> None:
    client = hand.connect()
    client.send(ENROLL, 0, EnrollRequest(CREW, "ann"))
    before = hand.transport.sent.get(client.connection_id, b"")

    hand.settle()

    assert before == b""
    assert len(hand.transport.sent[client.connection_id]) == ANSWER_BYTES


def test_offsets_stay_when_the_kind_of_a_group_changes(
    hand: BrokerByHand, user: RosterUser
) -> None:
    user.commit({0: 5}, CREW)

    assert user.enroll("ann") == "NONE"
    as_roster = (user.kinds()[CREW], user.offset(CREW))
    hand.crash()
    hand.settle()
    again = RosterUser(hand)
    loaded = (again.kinds()[CREW], again.offset(CREW))
    assert again.enroll("") == "NONE"

    assert as_roster == loaded == (("roster", "Open"), 5)
    assert (again.kinds()[CREW], again.offset(CREW)) == (("classic", "Empty"), 5)


def test_the_kind_says_who_may_commit(user: RosterUser) -> None:
    user.enroll("ann")

    assert user.commit({0: 5}, CREW) == [errors.UNKNOWN_MEMBER_ID]
    assert user.commit({0: 6}, CREW, member_id="ann", generation_id=1) == [errors.NONE]
    assert user.offset(CREW) == 6


def test_a_group_that_has_members_of_one_kind_takes_none_of_another(
    hand: BrokerByHand, user: RosterUser
) -> None:
    user.enroll("ann")
    classic = Member(hand, CREW)
    joined = classic.join_answer()
    classic.member_id, classic.generation_id = "ann", 1
    stabilize(Member(hand, "readers"))

    assert joined.error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert classic.heartbeat() == errors.UNKNOWN_MEMBER_ID
    assert classic.leave() == errors.UNKNOWN_MEMBER_ID
    assert user.enroll("ann", "readers") == "INCONSISTENT_GROUP_PROTOCOL"


def test_it_is_deleted_with_its_offsets_once_it_has_no_members(
    hand: BrokerByHand, user: RosterUser
) -> None:
    user.commit({0: 5}, CREW)
    user.enroll("ann")
    refused = user.delete_groups(CREW)
    user.enroll("")

    assert refused == [errors.NON_EMPTY_GROUP]
    assert user.delete_groups(CREW) == [errors.NONE]
    hand.crash()
    hand.settle()
    assert RosterUser(hand).group_ids() == []


def test_a_record_that_the_log_does_not_keep_leaves_nothing(
    hand: BrokerByHand, user: RosterUser
) -> None:
    hand.disk.fail_writes(1)

    assert user.enroll("ann") == "NOT_COORDINATOR"
    assert user.group_ids() == []


def generation(group_id: str) -> GroupMetadata:
    return GroupMetadata(
        group_id,
        protocol_type="consumer",
        generation_id=1,
        protocol_name=None,
        leader_id=None,
        state_timestamp_ms=1,
        members=[],
    )


def offset() -> OffsetCommitted:
    return OffsetCommitted("g", topic=ORDERS, partition=0, offset=5)


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([generation("g"), offset(), Roster("g", ("ann",))], "roster"),
        ([Roster("g", ("ann",)), offset(), generation("g")], "classic"),
        ([generation("g"), Roster("g", ("ann",)), offset(), generation("g")], "classic"),
        ([offset(), Roster("g", ("ann",)), GroupTombstone("g")], "roster"),
    ],
)
def test_of_records_of_two_kinds_the_later_one_says_the_kind(
    history: list[GroupRecord], kind: str
) -> None:
    loading = Loading()
    for record in history:
        loading.add(*record.encode())
    kinds = Kinds([CLASSIC, ROSTERS])
    loaded, applied = Groups(kinds), Groups(kinds)
    for record in history:
        applied.apply(record)

    assert loading.step(loaded, 100)
    for groups in (loaded, applied):
        assert groups.group("g").kind.name == kind
        assert groups.group("g").offset(ORDERS, 0) == offset()
