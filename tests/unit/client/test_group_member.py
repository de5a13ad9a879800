"""A member of a group by hand: versions, commits that wait, what is finished, what is held back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen

from tarry.base import errors
from tarry.base.errors import InvalidSetting
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.group.assignment.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_subscription,
)
from tarry.client.core.group.events import ASSIGNED
from tarry.client.core.group.membership import FINDING, JOINING, STABLE, SYNCING
from tarry.client.core.group.offsets.commit import Commit
from tarry.client.core.group.offsets.requests import VERSION_OF_NAMES_MAX, CommittedOffset
from tarry.client.core.operation import Done
from tarry.client.errors import CommitFailed
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import TimedOut, UnsupportedVersion
from tarry.link.events import Address
from tarry.protocol import api_keys
from tarry.protocol.messages.join_group import JoinGroupResponseMember

VERSIONS = [
    (key, version)
    for key in (
        api_keys.FIND_COORDINATOR,
        api_keys.JOIN_GROUP,
        api_keys.SYNC_GROUP,
        api_keys.HEARTBEAT,
        api_keys.LEAVE_GROUP,
        api_keys.OFFSET_COMMIT,
        api_keys.OFFSET_FETCH,
    )
    for version in range(api_keys.APIS[key].version_min, api_keys.APIS[key].version_max + 1)
]
# Newer versions of these name topics by ids, and members know names.
NEWEST = {
    api_keys.OFFSET_COMMIT: VERSION_OF_NAMES_MAX,
    api_keys.OFFSET_FETCH: VERSION_OF_NAMES_MAX,
}


def commit_of(offset: int) -> Commit:
    return Commit({PLACE: CommittedOffset(offset)})


def begin(scene: GroupScene, commit: Commit, timeout_ms: int = 10_000) -> Commit:
    scene.core.committer.begin(commit, timeout_ms, scene.cluster.now_ms)
    return commit


def joined(**settings: Any) -> GroupScene:
    scene = GroupScene(auto_offset_reset="earliest", **settings)
    scene.cluster.topics["t"].logs[0].add(*[b"x"] * 9)
    scene.join()
    return scene


def offsets_sent(scene: GroupScene) -> list[int]:
    return [
        seen.request.topics[0].partitions[0].committed_offset
        for seen in scene.requests(api_keys.OFFSET_COMMIT)
    ]


# --- Rounds


def test_a_member_whose_polls_are_always_answered_at_once_rejoins_all_the_same() -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky")
    scene.codes[api_keys.HEARTBEAT] = [errors.REBALANCE_IN_PROGRESS]
    scene.cluster.run_for(scene.core.consumer_settings.session_timeout_ms // 3)
    before = len(scene.requests(api_keys.JOIN_GROUP))

    poll = scene.core.begin_poll(1, 1_000, scene.cluster.now_ms)
    step = poll.step(scene.cluster.now_ms)
    poll.end(scene.cluster.now_ms)
    scene.cluster.run_for(10)

    assert isinstance(step, Done)
    assert len(scene.requests(api_keys.JOIN_GROUP)) == before + 1


# --- Versions


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_a_member_lives_with_every_version_of_every_request(api_key: int, version: int) -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.cluster.ranges[api_key] = (api_keys.APIS[api_key].version_min, version)

    scene.join()
    commit = begin(scene, commit_of(3))
    scene.cluster.run_until(lambda: commit.is_done)
    scene.core.leave("the test is over", scene.cluster.now_ms, even_static=False)
    scene.cluster.run_until(lambda: scene.core.membership.leaving.is_answered)

    sent = min(version, NEWEST.get(api_key, version))
    assert {seen.version for seen in scene.requests(api_key)} == {sent}
    assert commit.error is None


def test_a_broker_older_than_static_members_is_told_of_and_not_fooled() -> None:
    scene = GroupScene(group_instance_id="i1")
    scene.cluster.ranges[api_keys.JOIN_GROUP] = (0, 4)
    scene.core.subscribe(["t"])

    scene.poll(1_000)

    assert [type(error) for error in scene.raised] == [UnsupportedVersion]
    assert "remove group.instance.id" in str(scene.raised[0])


# --- Commits


def test_one_commit_is_under_way_and_the_newest_waits() -> None:
    scene = joined(enable_auto_commit=False)

    commits = [begin(scene, commit_of(offset)) for offset in (1, 2)]
    scene.core.turn([], scene.cluster.now_ms, 0)
    commits += [begin(scene, commit_of(offset)) for offset in (3, 4)]
    scene.cluster.run_until(lambda: all(commit.is_done for commit in commits))

    # The first two were one request, and so were those that came while it was under way.
    assert offsets_sent(scene) == [2, 4]
    assert [commit.error for commit in commits] == [None] * 4


def test_a_commit_of_what_was_revoked_meanwhile_is_not_sent() -> None:
    scene = joined(enable_auto_commit=False)
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.COORDINATOR_LOAD_IN_PROGRESS]
    commit = begin(scene, commit_of(3))
    scene.cluster.run_until(lambda: len(offsets_sent(scene)) == 1)

    scene.core.subscribe(["another"])
    scene.poll(2_000)

    assert offsets_sent(scene) == [3]
    assert isinstance(commit.error, CommitFailed)
    assert "t [0] was given up before" in str(commit.error)


def test_what_was_lost_is_not_committed_before_the_user_heard_of_it() -> None:
    scene = joined(enable_auto_commit=False)
    scene.codes[api_keys.HEARTBEAT] = [errors.UNKNOWN_MEMBER_ID]
    scene.cluster.run_until(lambda: scene.core.membership.has_event)

    commit = begin(scene, commit_of(3))
    scene.cluster.run_for(1_000)

    assert isinstance(commit.error, CommitFailed)
    assert offsets_sent(scene) == []


def test_a_commit_behind_one_of_which_nothing_is_left_is_not_kept_waiting() -> None:
    scene = joined(enable_auto_commit=False)
    other = ("t", 1)
    owned = scene.core.membership.ownership.owned
    owned.append(other)
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.COORDINATOR_LOAD_IN_PROGRESS]
    refused = begin(scene, commit_of(3))
    scene.cluster.run_until(lambda: len(offsets_sent(scene)) == 1)
    behind = begin(scene, Commit({other: CommittedOffset(7)}))

    # The partition goes while the first commit waits for its second attempt.
    owned.remove(PLACE)
    scene.cluster.run_until(lambda: refused.is_done)

    assert isinstance(refused.error, CommitFailed)
    assert offsets_sent(scene) == [3, 7]
    scene.cluster.run_until(lambda: behind.is_done)
    assert behind.error is None


def test_a_commit_that_nobody_answers_ends_in_time() -> None:
    scene = joined(enable_auto_commit=False)
    scene.cluster.rule(api_keys.OFFSET_COMMIT, lambda cluster, seen: SILENCE)
    began_ms = scene.cluster.now_ms
    commit = begin(scene, commit_of(3), timeout_ms=2_000)

    scene.cluster.run_until(lambda: commit.is_done)

    assert isinstance(commit.error, TimedOut)
    assert scene.cluster.now_ms == began_ms + 2_000


def test_a_commit_whose_connection_is_cut_is_sent_again() -> None:
    scene = joined(enable_auto_commit=False)
    scene.cluster.script(api_keys.OFFSET_COMMIT, lambda cluster, seen: CUT)
    commit = begin(scene, commit_of(3))

    scene.cluster.run_until(lambda: commit.is_done)

    assert commit.error is None
    assert scene.committed == 3


def test_a_failure_of_a_commit_without_a_callback_is_logged(caplog: Any) -> None:
    scene = joined(enable_auto_commit=False)
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.OFFSET_METADATA_TOO_LARGE]

    scene.core.commit_async({PLACE: 3}, None, scene.cluster.now_ms)
    scene.poll(100)

    assert "group g: an asynchronous commit failed: the offset of t [0]" in caplog.text


@pytest.mark.parametrize(
    ("what", "error", "sentence"),
    [
        (7, TypeError, "commit takes a record, records of a poll, or offsets such as"),
        ({PLACE: "7"}, TypeError, "takes an offset as an int, not '7'"),
        ({PLACE: CommittedOffset(-1)}, ValueError, "-1 is no offset"),
        ({PLACE: CommittedOffset(1, -2)}, ValueError, "-2 is no leader epoch"),
        ({PLACE: CommittedOffset(1, 0, b"x")}, TypeError, "takes metadata as str"),  # type: ignore[arg-type]
        ({PLACE: CommittedOffset(1, 0, "é" * 20_000)}, ValueError, "longer than 32767 bytes"),
        ({"t": 1}, TypeError, "takes partitions such as"),
    ],
)
def test_what_cannot_be_committed_is_refused_before_anything_is_sent(
    what: Any, error: type[Exception], sentence: str
) -> None:
    scene = joined(enable_auto_commit=False)

    with pytest.raises(error, match=sentence):
        scene.core.commit_async(what, None, scene.cluster.now_ms)
    with pytest.raises(error, match=sentence):
        scene.core.begin_commit(what, 1_000, scene.cluster.now_ms)
    scene.cluster.run_for(10)

    assert offsets_sent(scene) == []


def test_a_callback_of_a_commit_must_be_a_function() -> None:
    scene = joined(enable_auto_commit=False)

    with pytest.raises(TypeError, match="takes a function of the offsets and the error"):
        scene.core.commit_async({PLACE: 1}, 7, scene.cluster.now_ms)  # type: ignore[arg-type]


def test_a_commit_of_nothing_is_done_at_once() -> None:
    scene = joined(enable_auto_commit=False)

    assert begin(scene, Commit({})).is_done


def test_a_stranger_to_a_group_with_members_is_told_why_his_commit_is_refused() -> None:
    scene = GroupScene()
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.UNKNOWN_MEMBER_ID]
    scene.core.assign([PLACE])
    commit = begin(scene, commit_of(3))

    scene.cluster.run_until(lambda: commit.is_done)

    assert isinstance(commit.error, CommitFailed)
    assert "has members of its own" in str(commit.error)


# --- What is finished


def test_records_count_as_finished_when_the_next_poll_begins() -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky")
    core = scene.core
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms))
    core.take(4, scene.cluster.now_ms)
    before = core.finished_offsets()

    core.begin_poll(1_000, 500, scene.cluster.now_ms)

    assert before[PLACE].offset == 0
    assert core.finished_offsets()[PLACE].offset == 4


def test_what_is_committed_is_not_committed_again() -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky")
    core = scene.core
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms))
    core.take(4, scene.cluster.now_ms)
    core.begin_poll(1_000, 500, scene.cluster.now_ms)
    commit = core.begin_auto_commit(scene.cluster.now_ms)
    scene.cluster.run_until(lambda: commit.is_done)

    assert core.finished_offsets() == {}
    assert scene.committed == 4


def test_an_automatic_commit_that_fails_is_told_in_the_log(caplog: Any) -> None:
    scene = joined(auto_commit_interval_ms=100)
    core = scene.core
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.OFFSET_METADATA_TOO_LARGE]
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms))
    core.take(4, scene.cluster.now_ms)

    scene.poll(500)
    scene.poll(500)
    scene.poll(500)

    assert "an automatic commit failed" in caplog.text
    assert scene.committed == 4


def test_records_that_are_given_back_come_again_in_their_order() -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky")
    core = scene.core
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms))
    (group,) = core.take(6, scene.cluster.now_ms)

    core.position(PLACE).give_back(group.records[2:])

    (again,) = core.take(500, scene.cluster.now_ms)
    assert [record.offset for record in again.records] == [2, 3, 4, 5, 6, 7, 8]


# --- What is held back


@pytest.mark.parametrize("gap_ms", [44_000, 46_000])
def test_after_a_gap_longer_than_the_session_a_heartbeat_comes_before_records(gap_ms: int) -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky")
    core = scene.core
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms))

    scene.cluster.now_ms += gap_ms
    at_once = core.has_records(scene.cluster.now_ms)
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms))

    assert at_once == (gap_ms < 45_000)
    assert core.membership.confirmed_ms >= scene.cluster.now_ms - 45_000


def test_a_stop_in_a_join_is_noticed_too() -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky")
    core = scene.core
    scene.codes[api_keys.HEARTBEAT] = [errors.REBALANCE_IN_PROGRESS]
    scene.cluster.script(api_keys.JOIN_GROUP, lambda cluster, seen: SILENCE)
    scene.poll(1_000)
    assert core.membership.state == JOINING
    assert core.has_records(scene.cluster.now_ms)

    scene.cluster.now_ms += 46_000

    assert not core.has_records(scene.cluster.now_ms)


# --- Rounds


def test_a_member_may_be_closed_while_it_joins_and_a_commit_has_no_answer() -> None:
    scene = joined(partition_assignment_strategy="cooperative-sticky", enable_auto_commit=False)
    scene.cluster.script(api_keys.OFFSET_COMMIT, lambda cluster, seen: SILENCE)
    commit = begin(scene, commit_of(3), timeout_ms=300)
    scene.cluster.run_for(10)
    scene.cluster.script(api_keys.JOIN_GROUP, lambda cluster, seen: SILENCE)
    scene.core.membership.want_join("the subscription changed")
    scene.poll(100)
    assert scene.core.membership.state == JOINING
    assert not commit.is_done

    closing = scene.core.begin_close(2_000, scene.cluster.now_ms, leave=True)
    perform(scene.cluster, closing)

    assert len(scene.requests(api_keys.LEAVE_GROUP)) == 1


def test_a_join_waits_until_the_user_polls() -> None:
    scene = GroupScene()
    scene.core.subscribe(["t"])

    scene.cluster.run_for(5_000)

    assert scene.requests(api_keys.JOIN_GROUP) == []


def test_an_answer_to_a_join_is_followed_by_a_sync_although_nobody_polls() -> None:
    scene = GroupScene()
    scene.core.subscribe(["t"])
    scene.core.begin_poll(1_000, 500, scene.cluster.now_ms)
    scene.cluster.run_until(lambda: scene.core.membership.state == JOINING)
    scene.core.end_poll(scene.cluster.now_ms)

    scene.cluster.run_until(lambda: scene.core.membership.state == STABLE)

    assert scene.core.membership.owned == []
    assert scene.core.membership.has_event


def test_the_leader_waits_for_topics_it_does_not_know() -> None:
    scene = GroupScene()
    scene.cluster.rule(api_keys.METADATA, lambda cluster, seen: (5_000, cluster.metadata(seen)))
    scene.core.subscribe(["t"])

    scene.poll(4_000)
    before = scene.core.membership.state
    scene.poll(20_000)

    assert before in (SYNCING, FINDING)
    assert scene.core.membership.owned == [PLACE]


def test_a_leader_gives_partitions_to_the_members_near_their_replicas() -> None:
    scene = GroupScene(client_rack="far", partition_assignment_strategy="range")
    scene.cluster.topic("t", partitions=2)
    scene.cluster.brokers[2] = Address("10.0.0.2", 9092)

    def with_racks(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.metadata(seen)
        for broker, rack in zip(answer.brokers, ("near", "far"), strict=True):
            broker.rack = rack
        for partition in answer.topics[0].partitions:
            partition.replica_nodes = [1 + partition.partition_index]
        return answer

    def with_neighbour(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer: Any = scene.agree_to_join(cluster, seen)
        said = encode_subscription(Subscription(["t"], rack_id="near"))
        answer.members.append(JoinGroupResponseMember("z", None, said))
        return answer

    scene.cluster.rule(api_keys.METADATA, with_racks)
    scene.cluster.rule(api_keys.JOIN_GROUP, with_neighbour)
    scene.core.subscribe(["t"])
    scene.poll(1_000)

    # By their order alone the first member would have partition 0.
    (sync,) = scene.requests(api_keys.SYNC_GROUP)
    told = {one.member_id: decode_assignment(one.assignment) for one in sync.request.assignments}
    assert told == {scene.core.membership.member_id: [("t", 1)], "z": [PLACE]}


@pytest.mark.parametrize(("rack", "rounds"), [("far", 2), ("", 1)])
def test_a_leader_in_a_rack_assigns_anew_when_replicas_move_to_other_racks(
    rack: str, rounds: int
) -> None:
    scene = GroupScene(client_rack=rack, metadata_max_age_ms=1_000)
    scene.cluster.brokers[2] = Address("10.0.0.2", 9092)
    replicas = [1]
    away: list[int] = []

    def with_racks(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.metadata(seen)
        for broker, name in zip(answer.brokers, ("near", "far"), strict=True):
            broker.rack = name
        answer.brokers = [one for one in answer.brokers if one.node_id not in away]
        answer.topics[0].partitions[0].replica_nodes = list(replicas)
        return answer

    scene.cluster.rule(api_keys.METADATA, with_racks)
    scene.join()

    # A broker that is away for a while takes no replica to another rack.
    replicas.append(2)
    away.append(2)
    scene.poll(5_000)
    before = len(scene.requests(api_keys.SYNC_GROUP))
    away.clear()
    scene.poll(10_000)

    assert before == 1
    assert len(scene.requests(api_keys.SYNC_GROUP)) == rounds
    reasons = [one.request.reason for one in scene.requests(api_keys.JOIN_GROUP)]
    assert reasons[1:] == ["t [0] is in the racks far, near, not near"][: rounds - 1]


def test_a_coordinator_that_cannot_be_reached_is_asked_for_again() -> None:
    scene = joined()
    address = scene.cluster.brokers[1]
    scene.cluster.refused[address] = "connection refused"
    scene.cluster.cut(1)
    scene.cluster.run_for(3_000)
    state = scene.core.membership.state

    scene.cluster.refused.clear()
    scene.cluster.run_until(lambda: scene.core.membership.state == STABLE)

    assert state == FINDING
    assert scene.core.membership.owned == [PLACE]
    assert [event.kind for event in scene.told] == [ASSIGNED]


# --- Settings


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"group.instance.id": "i1"}, "give group.id too"),
        ({"heartbeat.interval.ms": 45_000}, "is not less than session.timeout.ms=45000"),
        ({"heartbeat.mode": "sometimes"}, "must be thread or poll"),
        ({"group.protocol": "consumer"}, "groups use the classic protocol"),
    ],
)
def test_settings_of_a_group_that_cannot_be_meant_are_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        ConsumerSettings(given)


@pytest.mark.parametrize(
    "code",
    [
        errors.NONE,
        errors.REBALANCE_IN_PROGRESS,
        errors.ILLEGAL_GENERATION,
        errors.UNKNOWN_MEMBER_ID,
        errors.FENCED_INSTANCE_ID,
        errors.NOT_COORDINATOR,
        errors.GROUP_AUTHORIZATION_FAILED,
    ],
)
def test_a_heartbeat_of_the_generation_before_says_nothing_about_this_one(code: int) -> None:
    scene = GroupScene()
    scene.join()
    membership = scene.core.membership
    stale = membership.identity()
    membership.want_join("for the test")
    scene.poll(1_000)
    assert membership.generation_id == 2
    confirmed_ms = membership.confirmed_ms

    membership.heartbeat.sent_ms = scene.cluster.now_ms
    membership.on_beat(code, stale, scene.cluster.now_ms)

    assert (membership.state, membership.generation_id) == (STABLE, 2)
    assert membership.owned == [PLACE]
    assert membership.join_reason == ""
    assert membership.confirmed_ms == confirmed_ms
    assert membership.failure is None
    assert membership.take_error() is None
    assert scene.core.coordinator.is_known


@pytest.mark.parametrize("records_max", [1, 3, 500])
def test_a_commit_says_the_leader_epoch_of_the_record_before_it(records_max: int) -> None:
    scene = GroupScene(auto_offset_reset="earliest", enable_auto_commit=False)
    cluster, core = scene.cluster, scene.core
    log = cluster.topics["t"].logs[0]
    for log.leader_epoch in (0, 2, 5):
        log.add(b"a", b"b")
    scene.join()
    found: list[Any] = []
    while len(found) < 6:
        for group in perform(cluster, core.begin_poll(records_max, 5_000, cluster.now_ms)):
            found += group.records

    for record in found:
        perform(cluster, core.begin_commit(record, 5_000, cluster.now_ms))
    perform(cluster, core.begin_commit(RecordGroup("t", 0, found[:3]), 5_000, cluster.now_ms))
    perform(cluster, core.begin_commit(None, 5_000, cluster.now_ms))
    perform(cluster, core.begin_commit({PLACE: 4}, 5_000, cluster.now_ms))

    sent = [seen.request.topics[0].partitions[0] for seen in scene.requests(api_keys.OFFSET_COMMIT)]
    assert [(one.committed_offset, one.committed_leader_epoch) for one in sent] == [
        *[(1, 0), (2, 0), (3, 2), (4, 2), (5, 5), (6, 5)],
        (3, 2),
        (6, 5),
        # An offset of the user's own stays as it is.
        (4, -1),
    ]
