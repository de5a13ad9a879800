"""Leaders that come and go: claims, hand-overs, new disks and what is doubted after a crash."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.broker.broker_user import a_batch
from tests.support.cluster.cluster_user import ClusterUser
from tests.support.cluster.leader_scene import TOPIC, LeaderScene

from tarry.base import errors
from tarry.base.etcd import Put
from tarry.base.limits import POLL_MS_MAX
from tarry.broker.shutdown import PARTING_MS_MAX
from tarry.cluster.decisions.elections import PREFERRED, UNCLEAN
from tarry.cluster.rows.rows import Keys
from tarry.log.batch_walk import Flaw
from tarry.log.log import Log
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tarry.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.runtime.loop import STOP_MS_MAX
from tarry.simulation import faults
from tarry.simulation.cluster.cluster_node import SESSION_MS
from tarry.simulation.faults import Fault
from tarry.wire.reader import window_of

ALL = [1, 2, 3]


def a_produce() -> ProduceRequest:
    data = PartitionProduceData(index=0, records=window_of(a_batch(b"a")))
    asked = TopicProduceData(name=TOPIC, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[asked])


def test_when_a_leader_dies_the_next_in_sync_leads_after_its_lease() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    scene.until(lambda: scene.leaders() == [1], "a leader")
    scene.kill(1)
    took_ms = scene.until(lambda: scene.leaders() == [2], "another leader")

    row = scene.row()
    assert (row.leader_id, row.leader_epoch, row.isr) == (2, 1, [2, 3])
    # The lease, late by half a second at most, and etcd's answers.
    assert took_ms < SESSION_MS + 1_000
    assert scene.violations() == []


def test_a_quick_restart_costs_no_lease_and_leaves_the_others_leading() -> None:
    scene = LeaderScene()
    scene.create([ALL, [1]])
    scene.until(lambda: scene.leads(1) and scene.leads(1, 1), "leaders")
    scene.node(1).lose(faults.KILL)
    took_ms = scene.until(lambda: scene.leads(1, 1), "the partition that only 1 has")

    assert took_ms < SESSION_MS
    scene.pass_ms(1_000)
    assert scene.row().leader_id == 2
    assert scene.row(1).leader_epoch == 1
    assert scene.violations() == []


def test_who_is_asked_to_stop_hands_over_first_and_nobody_waits_for_its_lease() -> None:
    scene = LeaderScene()
    scene.create([ALL, [2, 1], [1, 3], [1]])
    scene.until(lambda: scene.leads(1, 3), "leaders")
    took_ms = scene.stop(1)

    assert took_ms < 1_000
    scene.until(lambda: 1 not in scene.broker().cluster.placeable_ids, "the end of its life", 500)
    rows = [scene.row(index) for index in range(4)]
    assert [row.leader_id for row in rows] == [2, 2, 3, 1]
    # The new leaders need not wait for it.
    assert [row.isr for row in rows] == [[2, 3], [2, 1], [3], [1]]
    assert scene.leads(2) and scene.leads(3, 2)
    assert scene.violations() == []


@pytest.mark.parametrize("led", [ALL, [1]], ids=["handed over", "led to the end"])
def test_who_stops_ends_when_etcd_knows_that_it_is_gone(led: list[int]) -> None:
    """A revocation that the end of its link overtakes is none: the others wait for the lease."""
    scene = LeaderScene()
    scene.create([led])
    scene.until(lambda: scene.leads(1), "a leader")
    scene.stop(1)

    lives = scene.cluster.etcd_node.etcd.rows(b"/simulated/lives/")
    assert [row.key for row in lives] == [b"/simulated/lives/2", b"/simulated/lives/3"]


def test_a_leader_that_dies_while_another_ones_partitions_are_claimed_is_followed_too() -> None:
    scene = LeaderScene()
    scene.create([[1, 3], [2, 3]])
    scene.until(lambda: scene.leads(1) and scene.leads(2, 1), "leaders")
    scene.kill(1)
    scene.kill(2)
    scene.end_life(1)
    scene.until(lambda: scene.is_changing(3), "a claim under way")
    scene.end_life(2)
    scene.until(lambda: scene.leads(3) and scene.leads(3, 1), "the only one that lives")

    assert scene.violations() == []


def test_all_but_one_may_stop_one_after_the_other() -> None:
    scene = LeaderScene()
    scene.create([ALL] * 3, {"min.insync.replicas": "2"})
    for broker_id in (1, 2):
        scene.stop(broker_id)
        scene.until(lambda: len(scene.leaders()) == 1, "a leader")

    assert scene.leaders() == [3]
    assert scene.row().isr == [2, 3]
    assert scene.violations() == []


def test_nobody_waits_for_the_lease_of_a_broker_whose_flush_has_failed() -> None:
    scene = LeaderScene()
    scene.create([ALL], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    node = scene.node(1)
    node.plan.faults.append(Fault(0, faults.FLUSH_FAULT))
    node.disk.fail_flushes()
    user = ClusterUser(scene.cluster)
    user.begin(api_keys.PRODUCE, 11, a_produce())
    scene.until(lambda: node.broker is None, "the end of a broker that cannot flush")
    node.is_cut_off = True
    took_ms = scene.until(lambda: scene.leaders() == [2], "another leader")

    assert took_ms < SESSION_MS // 4
    assert scene.row().isr == [2, 3]
    # Nothing was acknowledged that is not on its disk.
    assert not any(user.answers)
    assert scene.violations() == []


@pytest.mark.parametrize("is_silent", [False, True], ids=["refuses", "silent"])
def test_a_broker_whose_flush_has_failed_waits_for_etcd_no_longer_than_a_second(
    is_silent: bool,
) -> None:
    scene = LeaderScene()
    scene.create([ALL], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    node = scene.node(1)
    if is_silent:
        assert node.door is not None
        node.door.lose_requests = 1 << 30
        node.door.watch_limit = 0
    else:
        node.cut_off()
    node.plan.faults.append(Fault(0, faults.FLUSH_FAULT))
    node.disk.fail_flushes()
    user = ClusterUser(scene.cluster)
    user.begin(api_keys.PRODUCE, 11, a_produce())
    took_ms = scene.until(lambda: node.broker is None, "the end of a broker that cannot flush")

    assert took_ms < PARTING_MS_MAX + POLL_MS_MAX
    assert not any(user.answers)
    assert scene.violations() == []


@pytest.mark.parametrize("is_silent", [False, True], ids=["refuses", "silent"])
@pytest.mark.parametrize("led", [ALL, [1], [2, 1]], ids=["led", "led alone", "followed"])
def test_a_stop_while_etcd_is_away_ends_clean_and_in_time(led: list[int], is_silent: bool) -> None:
    scene = LeaderScene()
    scene.create([led])
    scene.until(lambda: scene.leads(led[0]), "a leader")
    if is_silent:
        door = scene.node(1).door
        assert door is not None
        door.lose_requests = 1 << 30
        door.watch_limit = 0
    else:
        scene.node(1).cut_off()
    took_ms = scene.stop(1)

    # The runtime leaves it as it is then; a turn comes late by as much as it sleeps.
    assert took_ms < STOP_MS_MAX - POLL_MS_MAX
    scene.restart(1)
    assert scene.broker().logs.was_clean
    assert scene.violations() == []


def test_after_all_have_stopped_the_last_leader_leads_again() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    scene.stop(1)
    scene.stop(2)
    assert scene.row().isr == [3]
    scene.kill(3, faults.POWER)
    scene.restart(1)
    scene.pass_ms(3_000)
    assert scene.leaders() == []
    scene.restart(3)
    scene.until(lambda: scene.leaders() == [3], "the one that has everything")

    assert scene.violations() == []


def test_a_preferred_leader_takes_over_again() -> None:
    scene = LeaderScene(settings={"leader.imbalance.check.interval.seconds": "2"})
    scene.create([ALL], {"min.insync.replicas": "3"})
    scene.kill(1)
    scene.until(lambda: scene.leaders() == [2], "another leader")
    assert scene.row().isr == ALL
    scene.restart(1)
    scene.until(lambda: scene.leaders() == [1], "the preferred leader", 5_000)

    assert scene.row().leader_epoch == 2
    assert scene.violations() == []


# --- What is not whole.


def test_a_new_disk_under_an_old_id_leaves_every_isr_before_it_serves() -> None:
    scene = LeaderScene()
    scene.create([ALL, [3, 1, 2], [2, 3]])
    old = scene.registered_directory(1)
    scene.kill(1)
    scene.replace_disk(1)
    scene.restart(1)

    assert [scene.row(index).isr for index in range(3)] == [[2, 3], [3, 2], [2, 3]]
    assert scene.registered_directory(1) != old
    assert [index for index in range(3) if scene.leads(1, index)] == []
    assert scene.violations() == []


def test_a_new_disk_leaves_below_the_floor_but_never_as_the_last() -> None:
    scene = LeaderScene()
    scene.create([[1, 2], [1], [1, 3]], {"min.insync.replicas": "2"})
    scene.kill(1)
    scene.replace_disk(1)
    scene.restart(1)
    scene.pass_ms(1_000)

    # The claim keeps the floor, the leave does not; with everything copied it is in sync again.
    assert scene.isrs(0) == [[1, 2], [2], [1, 2]]
    assert scene.isrs(2) == [[1, 3], [3], [1, 3]]
    assert scene.row(1).isr == [1]
    assert scene.leaders(index=1) == []
    # Not with the next start of the same disk either, which is registered by now.
    scene.stop(1)
    scene.restart(1)
    scene.pass_ms(1_000)
    assert scene.leaders(index=1) == []
    assert scene.row(1).leader_id == 1
    assert scene.violations() == []


def logs(scene: LeaderScene) -> list[Log]:
    """The logs of the first partition at brokers 1 and 2."""
    found = [scene.node(each).broker for each in (1, 2)]
    replicas = [each.topics.replica(TOPIC, 0) for each in found if each is not None]
    return [each.log for each in replicas if each is not None]


def elect(scene: LeaderScene, number: int, election: int) -> int:
    places = [TopicPartitions(TOPIC, [0])]
    request = ElectLeadersRequest(election, places, timeout_ms=5_000)
    answer = ClusterUser(scene.cluster, number).call(api_keys.ELECT_LEADERS, 2, request)
    assert isinstance(answer, ElectLeadersResponse)
    return answer.replica_election_results[0].partition_result[0].error_code


def test_an_election_that_loses_nothing_elects_nobody_whose_log_is_not_whole() -> None:
    """The preferred leader is in sync and serves, but what it had was on another disk."""
    scene = LeaderScene()
    scene.create([[1, 2]])
    scene.until(lambda: scene.leads(1), "a leader")
    scene.kill(2)
    scene.until(lambda: scene.row().isr == [1], "a shrink")
    scene.kill(1)
    scene.replace_disk(1)
    scene.restart(1)
    scene.restart(2)
    code = elect(scene, 2, PREFERRED)
    scene.pass_ms(2_000)

    assert code == errors.PREFERRED_LEADER_NOT_AVAILABLE
    assert scene.leaders() == []
    assert (scene.row().leader_id, scene.row().leader_epoch) == (1, 0)
    assert scene.violations() == []


@pytest.mark.parametrize("how", ["by hand", "by setting"])
def test_an_unclean_election_takes_records_of_a_replica_before_an_empty_disk(how: str) -> None:
    """The last replica in sync has got another disk: whoever followed it has most of its records,
    which it would have to cut if the empty one led.
    """
    scene = LeaderScene()
    configs = {"message.timestamp.type": "LogAppendTime"}
    if how == "by setting":
        configs["unclean.leader.election.enable"] = "true"
    scene.create([[1, 2]], configs)
    scene.until(lambda: scene.leads(1), "a leader")
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    scene.kill(2)
    scene.until(lambda: scene.row().isr == [1], "a shrink")
    scene.kill(1)
    scene.replace_disk(1)
    scene.restart(1)
    scene.restart(2)
    scene.pass_ms(2_000)
    assert scene.leaders() == []
    if how == "by hand":
        assert elect(scene, 3, UNCLEAN) == errors.NONE
    scene.until(lambda: scene.leaders() == [2], "a leader with records", 20_000)
    scene.until(lambda: sorted(scene.row().isr) == [1, 2], "both in sync again")

    assert [log.log_end_offset for log in logs(scene)] == [1, 1]


def test_what_was_frozen_before_a_broker_could_leave_is_left_when_it_is_mended() -> None:
    scene = LeaderScene(settings={"flush.policy": "os"})
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    answer = ClusterUser(scene.cluster).call(api_keys.PRODUCE, 11, a_produce())
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE
    # A recovery point has it by then.
    scene.pass_ms(10_000)
    scene.kill(2, faults.POWER)
    etcd = scene.cluster.etcd_node.etcd
    key = Keys("/simulated/").topic(scene.broker().topics[TOPIC].topic_id)
    sound = etcd.rows(key)[0].value
    scene.node(2).reconnect()
    scene.until(lambda: scene.node(2).broker is not None, "a start on sound rows")
    assert etcd.transact([], [Put(key, b"[1,7]")])[0]
    scene.until(lambda: scene.leaders() == [], "nobody leads")
    scene.wait_until_ready(2)
    assert scene.isrs() == []
    assert etcd.transact([], [Put(key, sound)])[0]
    scene.until(lambda: scene.isrs() == [[1], [1, 2]], "it leaves and is in sync again")
    scene.kill(1)
    scene.until(lambda: scene.leaders() == [2], "a log that is doubted no more")

    assert scene.violations() == []


def test_what_an_operator_elects_is_doubted_no_more() -> None:
    scene = LeaderScene()
    scene.create([[1]], {"unclean.leader.election.enable": "true"})
    scene.kill(1)
    scene.replace_disk(1)
    scene.restart(1)
    scene.until(lambda: scene.leaders() == [1], "an unclean election", 20_000)
    assert scene.row().unclean_epoch == scene.row().leader_epoch == 1
    scene.pass_ms(1_000)
    scene.node(1).lose(faults.KILL)
    scene.wait_until_ready(1)

    assert scene.leaders() == [1]
    assert scene.row().leader_epoch == 2
    assert scene.violations() == []


@pytest.mark.parametrize(
    ("policy", "kind", "stays"),
    [
        ("commit", faults.POWER, True),
        ("commit", faults.KILL, True),
        ("os", faults.KILL, True),
        ("os", faults.POWER, False),
    ],
)
def test_who_may_have_lost_what_it_promised_leaves(policy: str, kind: str, stays: bool) -> None:
    scene = LeaderScene(settings={"flush.policy": policy})
    scene.create([ALL, [1]], {"min.insync.replicas": "3"})
    scene.until(lambda: scene.leads(1), "a leader")
    scene.kill(1, kind)
    scene.until(lambda: scene.leaders() == [2], "another leader")
    scene.restart(1)

    assert scene.row().isr == (ALL if stays else [2, 3])
    # Where it has the only replica nobody knows better.
    scene.until(lambda: scene.leads(1, 1), "the partition that only 1 has")
    assert scene.violations() == []


def test_a_clean_stop_is_trusted_with_any_policy() -> None:
    scene = LeaderScene(settings={"flush.policy": "os"})
    scene.create([ALL], {"min.insync.replicas": "3"})
    scene.stop(1)
    scene.restart(1)

    assert scene.row().isr == ALL
    assert scene.violations() == []


# --- Replicas that go and come back.


def reassign(scene: LeaderScene, number: int, target: list[int]) -> int:
    topic = ReassignableTopic(TOPIC, [ReassignablePartition(0, target)])
    request = AlterPartitionReassignmentsRequest(5_000, topics=[topic])
    answer = ClusterUser(scene.cluster, number).call(
        api_keys.ALTER_PARTITION_REASSIGNMENTS, 1, request
    )
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    return answer.responses[0].partitions[0].error_code


def test_a_replica_that_was_taken_away_while_its_broker_was_down_can_come_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    scene.stop(2)
    assert reassign(scene, 1, [1]) == errors.NONE
    scene.restart(2)
    assert scene.row().replicas == [1]
    assert reassign(scene, 1, [1, 2]) == errors.NONE
    scene.until(lambda: sorted(scene.row().isr) == [1, 2], "both in sync again", 10_000)

    assert [log.flaw_offset for log in logs(scene)] == [-1, -1]
    assert [log.flushed_offset for log in logs(scene)] == [1, 1]
    # The recovery point of the replica before does not count for the new one.
    assert "damaged" not in caplog.text
    assert scene.violations() == []


@pytest.mark.parametrize("killed", ["not", "before", "after"])
def test_a_replica_that_comes_back_at_once_is_whole_after_a_loss_of_power(
    killed: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    # A recovery point has it by then.
    scene.pass_ms(10_000)
    if killed == "before":
        scene.kill(2)
    assert reassign(scene, 1, [1]) == errors.NONE
    if killed == "after":
        scene.until(lambda: len(logs(scene)) == 1, "a replica less")
        scene.kill(2)
    if killed != "not":
        scene.restart(2)
    assert reassign(scene, 1, [1, 2]) == errors.NONE
    scene.until(lambda: sorted(scene.row().isr) == [1, 2], "both in sync again", 15_000)
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    scene.kill(2, faults.POWER)
    scene.restart(2)
    scene.until(lambda: sorted(scene.row().isr) == [1, 2], "both in sync once more", 15_000)

    # The recovery point of the replica before does not count for the new one.
    assert "damaged" not in caplog.text
    assert [log.flushed_offset for log in logs(scene)] == [2, 2]
    assert scene.violations() == []


def test_a_damaged_log_is_copied_anew_before_it_is_in_sync(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It ends where the leader's does, and has not what lies before."""
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    scene.stop(2)
    scene.until(lambda: scene.row().isr == [1], "a shrink")
    scene.node(2).disk.lose_file(f"{TOPIC}-0/{0:020}.log")
    scene.restart(2)
    scene.until(lambda: sorted(scene.row().isr) == [1, 2], "both in sync again", 10_000)

    assert [log.flaw_offset for log in logs(scene)] == [-1, -1]
    assert [log.flushed_offset for log in logs(scene)] == [1, 1]
    assert "t-0 is damaged at offset 0: it is given up" in caplog.text
    assert scene.violations() == []


@pytest.mark.parametrize("number", [1, 2], ids=["leader", "follower"])
def test_who_finds_its_log_damaged_leaves_those_in_sync_and_copies_it_anew(number: int) -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"})
    scene.until(lambda: scene.leads(1), "a leader")
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    logs(scene)[number - 1].note_flaw(Flaw("a bit has turned", 0, 0))
    scene.until(lambda: scene.row().isr == [3 - number], "its leave", 5_000)
    assert scene.leaders() == [3 - number]
    scene.until(lambda: sorted(scene.row().isr) == [1, 2], "both in sync again", 10_000)

    assert [log.flaw_offset for log in logs(scene)] == [-1, -1]
    assert [log.flushed_offset for log in logs(scene)] == [1, 1]
    assert scene.violations() == []


def test_who_has_found_its_log_damaged_claims_nothing() -> None:
    scene = LeaderScene()
    scene.create([[1, 2]], {"message.timestamp.type": "LogAppendTime"})
    scene.until(lambda: scene.leads(1), "a leader")
    ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, a_produce())
    scene.kill(1)
    broker = scene.node(2).broker
    assert broker is not None
    damaged = broker.topics.replica(TOPIC, 0)
    assert damaged is not None
    damaged.log.note_flaw(Flaw("a bit has turned", 0, 0))
    scene.pass_ms(3 * SESSION_MS)

    assert scene.leaders() == []
    scene.restart(1)
    scene.until(lambda: scene.leaders() == [1], "the one that has everything")
    assert scene.violations() == []


# --- What is asked for, and etcd's answer is lost.


def test_a_growth_and_a_deletion_whose_answers_were_lost_are_told_as_done() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    user = ClusterUser(scene.cluster, 1)
    door = scene.node(1).door
    assert door is not None
    codes = []
    for key, version, request in (
        (
            api_keys.CREATE_PARTITIONS,
            3,
            CreatePartitionsRequest([CreatePartitionsTopic(TOPIC, 3, None)], 20_000),
        ),
        (api_keys.DELETE_TOPICS, 6, DeleteTopicsRequest([DeleteTopicState(TOPIC)], [], 20_000)),
    ):
        door.lose_answers = 1
        # Rows that came by the watch before would show it all the same.
        door.watch_limit = scene.cluster.etcd_node.etcd.revision
        user.begin(key, version, request)
        scene.until(lambda: door.lose_answers == 0, "a deed")
        scene.pass_ms(100)
        door.watch_limit = None
        scene.until(lambda: bool(user.answers), "an answer")
        answer = user.answers.pop()
        assert isinstance(answer, CreatePartitionsResponse | DeleteTopicsResponse)
        results: Sequence[CreatePartitionsTopicResult | DeletableTopicResult] = (
            answer.results if isinstance(answer, CreatePartitionsResponse) else answer.responses
        )
        codes.append(results[0].error_code)

    assert codes == [errors.NONE, errors.NONE]
    assert scene.violations() == []


# --- Elections by the clock.


def test_without_anybody_in_sync_a_topic_that_allows_it_gets_a_leader() -> None:
    scene = LeaderScene()
    scene.create([ALL, ALL], {"unclean.leader.election.enable": "true"})
    scene.create([ALL], name="safe")
    scene.kill(2)
    scene.kill(3)
    for name in ("t", "safe"):
        scene.until(lambda name=name: scene.row(name=name).isr == [1], "a shrink")  # type: ignore[misc]
    scene.kill(1)
    scene.restart(3)
    scene.pass_ms(8_000)
    early = scene.leaders()
    took_ms = scene.until(lambda: scene.leaders() == [3], "an unclean election")

    assert early == []
    assert took_ms < 9_000
    row = scene.row()
    assert (row.isr, row.unclean_epoch) == ([3], row.leader_epoch)
    assert scene.leaders("safe") == []
    assert scene.violations() == []


def test_a_leader_whose_disk_refuses_writes_hands_over_and_a_follower_leaves() -> None:
    scene = LeaderScene()
    scene.create([ALL, [2, 1, 3]])
    scene.until(lambda: scene.leads(1) and scene.leads(2, 1), "leaders")
    broker = scene.node(1).broker
    assert broker is not None
    for index in (0, 1):
        partition = broker.topics.replica("t", index)
        assert partition is not None
        broker.flushes.refused[partition] = None
    took_ms = scene.until(lambda: scene.leaders() == [2], "another leader")
    scene.until(lambda: scene.row().isr == [2, 3], "its leave")
    scene.until(lambda: scene.row(1).isr == [2, 3], "its leave as a follower")

    assert 1_000 <= took_ms < 2_500
    assert scene.violations() == []


def test_a_write_that_succeeds_again_keeps_the_leader() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    scene.until(lambda: scene.leads(1), "a leader")
    broker = scene.node(1).broker
    assert broker is not None
    partition = broker.topics.partition("t", 0)
    assert partition is not None
    for _ in range(2):
        # The second time is no sequel of the first.
        broker.flushes.refused[partition] = None
        scene.pass_ms(700)
        broker.flushes.touch(partition)
        scene.pass_ms(3_000)

    assert broker.flushes.refused == {}
    assert scene.leaders() == [1]


def test_a_leader_whose_disk_refuses_a_log_hands_over_and_the_rest_of_its_topic_is_served() -> None:
    scene = LeaderScene()
    scene.node(1).disk.refuse_directory("t-0")
    scene.node(1).disk.refuse_directory("t-3")
    scene.create([ALL, ALL, [2, 1, 3], [2, 1, 3]])
    took_ms = scene.until(lambda: scene.leads(2) and scene.leads(1, 1), "leaders")
    scene.until(lambda: scene.row().isr == [2, 3], "its leave")
    scene.until(lambda: scene.row(3).isr == [2, 3], "its leave as a follower")
    # Its other replicas are as they were made.
    others = [scene.row(1).isr, scene.row(2).isr]

    scene.node(1).disk.heal()
    scene.until(lambda: sorted(scene.row().isr) == [1, 2, 3], "its return")
    scene.until(lambda: sorted(scene.row(3).isr) == [1, 2, 3], "its return as a follower")

    assert took_ms < 3_000
    assert others == [ALL, [2, 1, 3]]
    assert scene.violations() == []


def test_a_refused_log_is_handed_on_until_a_replica_takes_it() -> None:
    """The floor lets nobody leave: whoever gets it next is another one each time."""
    scene = LeaderScene()
    for number in (1, 2):
        scene.node(number).disk.refuse_directory("t-0")
    scene.create([ALL], {"min.insync.replicas": "3"})
    took_ms = scene.until(lambda: scene.leads(3), "a leader")

    assert took_ms < 5_000
    assert scene.violations() == []


def test_a_replica_that_is_refused_and_taken_away_leaves_nothing_behind() -> None:
    scene = LeaderScene()
    scene.node(1).disk.refuse_directory("t-0")
    scene.create([[2, 1, 3]])
    scene.until(lambda: scene.row().isr == [2, 3], "its leave")
    reassign(scene, 2, [2, 3])
    scene.until(lambda: scene.row().replicas == [2, 3], "the reassignment")
    scene.node(1).disk.heal()
    scene.pass_ms(3_000)

    broker = scene.node(1).broker
    assert broker is not None
    assert broker.hosting.refused_places() == []
    assert not scene.node(1).disk.exists("t-0")
    assert scene.violations() == []
