"""The checkers that look at the coordinator itself: its log against its groups, and its rounds."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.records import GroupTombstone
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    STABLE,
    Member,
)
from tarry.group.classic.state import ClassicGroup
from tarry.group.decision import Decision
from tarry.group.offsets.appends import TombstonesAppend
from tarry.group.offsets.records import OffsetTombstone
from tarry.group.state import GroupState, MemberSession
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.checkers.groups.log_replay import LogReplay
from tarry.simulation.checkers.groups.rounds import wrong_with_round
from tarry.simulation.groups.history import ALL, GroupHistory, OffsetWrite


class RecordsScenario:
    """A broker with one offset committed for group `g`, and the checker that follows its log."""

    def __init__(self) -> None:
        self.hand = BrokerByHand({"offsets.topic.num.partitions": "1"})
        self.history = GroupHistory()
        self.deleted_topics: list[str] = []
        self.replay = LogReplay(self.hand.disk, self.history, self.is_deleted)
        client = self.hand.connect()
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        client.ask(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=9_000))
        client.ask(api_keys.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        commit = OffsetCommitRequestTopic(name="t", partitions=[partition])
        answer = client.ask(
            api_keys.OFFSET_COMMIT, 8, OffsetCommitRequest(group_id="g", topics=[commit])
        )
        assert isinstance(answer, OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == errors.NONE

    def is_deleted(self, name: str) -> bool:
        return name in self.deleted_topics

    @property
    def group(self) -> GroupState:
        return self.hand.broker.groups.shards[0].group("g")

    def check(self) -> list[str]:
        return self.replay.after_turn(self.hand.broker, 1)

    def remove_offset(self, *, removes_group: bool = False) -> None:
        """The broker writes a tombstone by itself."""
        decision = Decision(self.hand.broker.this_turn.now_ms)
        tombstones = [OffsetTombstone("g", topic="t", partition=0)]
        records = [GroupTombstone("g")] if removes_group else tombstones
        decision.append = TombstonesAppend(records, None, is_group=False)
        self.hand.broker.groups.shards[0].carry_out(self.group, decision)
        self.hand.settle()


@pytest.fixture
def scenario() -> RecordsScenario:
    return RecordsScenario()


def test_groups_that_are_what_their_log_says_have_nothing_wrong(scenario: RecordsScenario) -> None:
    assert scenario.check() == []


def test_an_offset_that_the_log_does_not_have_is_found(scenario: RecordsScenario) -> None:
    committed = scenario.group.offsets.pop("t")
    gone = scenario.check()
    scenario.group.offsets["t"] = committed
    scenario.group.offsets["u"] = committed

    assert "the log of __consumer_offsets-0 says {'t'" in gone[0]
    assert "the offsets of group g are {'t'" in scenario.check()[0]


def test_a_tombstone_that_nobody_asked_for_is_found(scenario: RecordsScenario) -> None:
    scenario.check()
    scenario.remove_offset()

    assert (
        "the offset of t-0 of group g was removed 0 ms after its time began" in scenario.check()[0]
    )


def test_a_tombstone_may_be_asked_for_by_a_deletion_of_the_topic_or_of_the_group() -> None:
    with_topic = RecordsScenario()
    with_topic.check()
    with_topic.deleted_topics.append("t")
    with_topic.remove_offset()
    with_group = RecordsScenario()
    with_group.check()
    with_group.history.writes.append(OffsetWrite(("g", "", ALL), "", -1))
    with_group.remove_offset()

    assert with_topic.check() == []
    assert with_group.check() == []


def test_a_tombstone_that_is_due_explains_itself_to_the_readers(scenario: RecordsScenario) -> None:
    scenario.history.retention_ms = 60_000
    scenario.check()
    scenario.hand.turn(after_ms=60_000)
    scenario.remove_offset()

    assert scenario.check() == []
    assert [(write.is_deletion, write.end_turn) for write in scenario.history.writes] == [(True, 1)]


def test_a_removed_group_that_keeps_an_offset_is_found(scenario: RecordsScenario) -> None:
    scenario.check()
    scenario.remove_offset(removes_group=True)

    assert scenario.check()[0] == "group g is removed and has offsets"


def test_a_group_that_ceases_to_exist_is_noted(scenario: RecordsScenario) -> None:
    scenario.check()
    scenario.history.writes.append(OffsetWrite(("g", "", ALL), "", -1))
    scenario.remove_offset()
    scenario.check()

    assert scenario.history.ends == {"g": [1]}


def test_after_a_restart_the_whole_log_is_read_again(scenario: RecordsScenario) -> None:
    scenario.check()
    scenario.hand.crash()
    scenario.replay.on_life_begins()
    scenario.hand.settle()

    assert scenario.check() == []
    assert scenario.replay.replays == 2


# -- rounds


def a_round(phase: int) -> ClassicGroup:
    """A group of one member in this phase, with its assignment on the way."""
    group = CLASSIC.new_group("g")
    now = group.round
    now.phase = phase
    now.members = {"a": Member("a", None, "c", "h", 1_000, 1_000, (("range", b""),))}
    now.leader_id = "a"
    now.protocol_name = "range"
    group.heartbeats = {"a": MemberSession(5_000, 0)}
    return group


def test_a_round_as_it_should_be_has_nothing_wrong() -> None:
    assert wrong_with_round(a_round(COMPLETING_REBALANCE)) == ""


def test_a_member_that_nobody_watches_and_that_waits_for_nothing_is_found() -> None:
    unwatched = a_round(COMPLETING_REBALANCE)
    unwatched.heartbeats = {}
    forgotten = a_round(COMPLETING_REBALANCE)
    forgotten.heartbeats = {"a": MemberSession(None, 0)}

    assert wrong_with_round(unwatched) == "sessions of [], and there are ['a']"
    assert wrong_with_round(forgotten) == "member a is kept for ever"


def test_a_session_of_nobody_is_found() -> None:
    group = a_round(COMPLETING_REBALANCE)
    group.heartbeats["b"] = MemberSession(5_000, 0)

    assert wrong_with_round(group) == "sessions of ['a', 'b'], and there are ['a']"


def test_a_group_that_works_without_a_record_is_found() -> None:
    assert wrong_with_round(a_round(STABLE)) == "it works and is not recorded"


def test_a_deadline_without_anybody_who_is_late_is_found() -> None:
    group = a_round(COMPLETING_REBALANCE)
    group.round.sync_deadline_ms = 7_000

    assert wrong_with_round(group) == "sync deadline 7000, and not synced are []"
