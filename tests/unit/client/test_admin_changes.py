"""Admin calls that change settings, partitions and records."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.scripted_admin import serve_admins
from tests.support.client.scripted_cluster import CUT, ScriptedCluster, Seen
from tests.support.client.scripted_groups import BROKER, TOPIC, GroupCluster

from tarry.base import errors
from tarry.client.core.admin.configs import APPEND, DELETE, SET, SUBTRACT, ConfigChange
from tarry.client.core.admin.epochs import FoundEpoch
from tarry.client.core.admin.partitions import TO_THE_END
from tarry.client.core.admin.producers import ActiveProducer
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.errors import BrokerError, UnknownTopic, UnsupportedVersion
from tarry.client.sync.admin import Admin
from tarry.link.errors import TimedOut
from tarry.protocol import api_keys


@pytest.fixture
def cluster() -> GroupCluster:
    made = GroupCluster(brokers=3)
    made.topic("t", partitions=2, leader_id=2)
    return made


@pytest.fixture
def admin(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> Admin:
    return serve_admins(cluster, monkeypatch)()


# --- Settings


def test_settings_are_set_unset_appended_and_subtracted(
    admin: Admin, cluster: GroupCluster
) -> None:
    admin.change_topic_configs(
        "t", [ConfigChange("retention.ms", SET, "5"), ConfigChange("cleanup.policy", APPEND, "x")]
    )
    set_ = dict(cluster.settings[TOPIC, "t"])
    admin.change_topic_configs(
        "t", [ConfigChange("retention.ms", DELETE), ConfigChange("cleanup.policy", SUBTRACT, "x")]
    )

    assert set_ == {"retention.ms": "5", "cleanup.policy": "delete,x"}
    assert cluster.settings[TOPIC, "t"] == {"cleanup.policy": "delete"}


def test_what_is_only_validated_changes_nothing(admin: Admin, cluster: GroupCluster) -> None:
    admin.change_topic_configs("t", [ConfigChange("retention.ms", SET, "5")], validate_only=True)

    assert cluster.settings == {}


def test_a_refused_setting_is_raised_with_the_broker_s_sentence(admin: Admin) -> None:
    with pytest.raises(BrokerError, match=r"Unknown topic config name: no\.such"):
        admin.change_topic_configs("t", [ConfigChange("no.such", SET, "5")])


def test_settings_of_a_broker_go_to_it_and_those_of_all_brokers_to_any(
    admin: Admin, cluster: GroupCluster
) -> None:
    admin.describe_cluster()
    cluster.seen.clear()

    admin.change_broker_configs(3, [ConfigChange("retention.ms", SET, "5")])
    admin.change_broker_configs(None, [ConfigChange("retention.ms", SET, "6")])
    one = {entry.name: entry for entry in admin.describe_broker_configs(3)}
    every = {entry.name: entry for entry in admin.describe_broker_configs(None)}

    assert cluster.requests(api_keys.INCREMENTAL_ALTER_CONFIGS)[0].broker_id == 3
    assert cluster.requests(api_keys.DESCRIBE_CONFIGS)[0].broker_id == 3
    assert cluster.settings == {
        (BROKER, "3"): {"retention.ms": "5"},
        (BROKER, ""): {"retention.ms": "6"},
    }
    assert (one["retention.ms"].value, one["retention.ms"].source) == ("5", "broker (dynamic)")
    assert (every["retention.ms"].value, every["retention.ms"].source) == (
        "6",
        "cluster (dynamic)",
    )


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_settings_are_explained_by_brokers_that_can(
    admin: Admin, cluster: GroupCluster, version: int
) -> None:
    cluster.ranges[api_keys.DESCRIBE_CONFIGS] = (1, version)

    short = admin.describe_topic_configs("t")[0]
    explained = admin.describe_topic_configs("t", explain=True)[0]

    assert (short.name, short.documentation, short.synonyms) == ("cleanup.policy", "", ())
    assert explained.documentation == ("What <b>cleanup.policy</b> does." if version >= 3 else "")
    assert explained.type_name == ("list" if version >= 3 else "")
    assert [(one.name, one.value, one.source) for one in explained.synonyms] == [
        ("cleanup.policy", "delete", "default")
    ]


def test_settings_of_a_topic_that_is_not_there_are_refused_at_once(
    admin: Admin, cluster: GroupCluster
) -> None:
    with pytest.raises(BrokerError, match="topic 'nope' does not exist"):
        admin.describe_topic_configs("nope")
    with pytest.raises(BrokerError, match="topic 'nope' does not exist"):
        admin.change_topic_configs("nope", [ConfigChange("retention.ms", SET, "5")])

    assert len(cluster.requests(api_keys.DESCRIBE_CONFIGS)) == 1
    assert len(cluster.requests(api_keys.INCREMENTAL_ALTER_CONFIGS)) == 1


# --- Partitions


def test_partitions_are_added_up_to_a_count(admin: Admin, cluster: GroupCluster) -> None:
    tried = admin.create_partitions("t", 5, validate_only=True, outcomes=True)
    before = len(cluster.topics["t"].logs)
    done = admin.create_partitions("t", 5, assignment=[[1], [2], [3]], outcomes=True)
    again = admin.create_partitions("t", 5, outcomes=True)
    nowhere = admin.create_partitions("nope", 5, outcomes=True)

    assert (tried.error, before, done.error) == (None, 2, None)
    assert len(cluster.topics["t"].logs) == 5
    assert str(again.error) == "Topic already has 5 partition(s) (INVALID_PARTITIONS)"
    assert "'nope' does not exist" in str(nowhere.error)
    sent = cluster.requests(api_keys.CREATE_PARTITIONS)[1].request.topics[0]
    assert [one.broker_ids for one in sent.assignments] == [[1], [2], [3]]


# --- Records


def test_records_are_deleted_at_the_leaders(admin: Admin, cluster: GroupCluster) -> None:
    cluster.topic("u", partitions=1, leader_id=3)
    for log in (*cluster.topics["t"].logs, *cluster.topics["u"].logs):
        log.add(b"1", b"2", b"3")

    done = admin.delete_records({("t", 0): 2, ("t", 1): TO_THE_END, ("u", 0): 1}, outcomes=True)

    assert done == {("t", 0): 2, ("t", 1): 3, ("u", 0): 1}
    assert [one.broker_id for one in cluster.requests(api_keys.DELETE_RECORDS)] == [2, 3]


def move_after_metadata(cluster: GroupCluster) -> None:
    """Let the leader of t-0 move right after the next Metadata answer has named it."""
    log = cluster.topics["t"].logs[0]

    def then_moved(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        log.leader_id = 3
        return answer

    cluster.script(api_keys.METADATA, then_moved)


def test_a_leader_that_moved_is_found_again(admin: Admin, cluster: GroupCluster) -> None:
    cluster.topics["t"].logs[0].add(b"1", b"2")
    move_after_metadata(cluster)

    assert admin.delete_records({("t", 0): 1}) == {("t", 0): 1}
    assert [one.broker_id for one in cluster.requests(api_keys.DELETE_RECORDS)] == [2, 3]


def test_a_lost_answer_is_asked_for_again(admin: Admin, cluster: GroupCluster) -> None:
    cluster.topics["t"].logs[0].add(b"1", b"2")
    cluster.script(api_keys.DELETE_RECORDS, lambda cluster, seen: CUT)

    assert admin.delete_records({("t", 0): 1}) == {("t", 0): 1}


def test_each_partition_has_its_own_outcome(admin: Admin, cluster: GroupCluster) -> None:
    cluster.topics["t"].logs[0].add(b"1", b"2")

    done = admin.delete_records(
        {("t", 0): 1, ("t", 1): 9, ("t", 7): 1, ("nope", 0): 1}, outcomes=True
    )

    assert done["t", 0] == 1
    assert isinstance(done["t", 7], UnknownTopic)
    assert isinstance(done["nope", 0], UnknownTopic)
    refused = done["t", 1]
    assert isinstance(refused, BrokerError)
    assert refused.code == errors.OFFSET_OUT_OF_RANGE
    assert "t [1] ends before offset 9" in str(refused)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errors.POLICY_VIOLATION, "t [0] is compacted"),
        (errors.INVALID_TOPIC_EXCEPTION, "t [0] is internal"),
        (errors.TOPIC_AUTHORIZATION_FAILED, "the records of t [0] were not deleted"),
    ],
)
def test_why_records_stay_is_a_sentence(
    admin: Admin, cluster: GroupCluster, code: int, sentence: str
) -> None:
    def refuse(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        answer.topics[0].partitions[0].error_code = code
        return answer

    cluster.script(api_keys.DELETE_RECORDS, refuse)

    done = admin.delete_records({("t", 0): 0}, outcomes=True)

    assert sentence in str(done["t", 0])


def test_a_partition_without_leader_is_given_up_in_time(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.topics["t"].logs[0].add(b"1", b"2")
    cluster.topics["t"].logs[1].leader_id = -1

    done = admin.delete_records({("t", 0): 1, ("t", 1): 1}, timeout=2.0, outcomes=True)

    assert done["t", 0] == 1
    assert isinstance(done["t", 1], TimedOut)
    assert "t [1] has no leader" in str(done["t", 1])


# --- Producers


def test_producers_are_described_by_the_leaders(admin: Admin, cluster: GroupCluster) -> None:
    cluster.topics["t"].logs[0].add(b"1", b"2")
    cluster.topics["t"].logs[1].leader_id = 3

    found = admin.describe_producers([("t", 0), ("t", 1)])

    assert found == {("t", 0): [ActiveProducer(7, 0, 1, 1000, -1, -1)], ("t", 1): []}
    assert [one.broker_id for one in cluster.requests(api_keys.DESCRIBE_PRODUCERS)] == [2, 3]


def test_producers_of_a_partition_whose_leader_moved_are_asked_for_again(
    admin: Admin, cluster: GroupCluster
) -> None:
    move_after_metadata(cluster)

    assert admin.describe_producers([("t", 0)]) == {("t", 0): []}
    assert [one.broker_id for one in cluster.requests(api_keys.DESCRIBE_PRODUCERS)] == [2, 3]


def test_producers_that_a_broker_does_not_tell_are_an_error_of_their_partition(
    admin: Admin, cluster: GroupCluster
) -> None:
    def refused(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        answer.topics[0].partitions[1].error_code = errors.TOPIC_AUTHORIZATION_FAILED
        return answer

    cluster.script(api_keys.DESCRIBE_PRODUCERS, refused)

    found = admin.describe_producers([("t", 0), ("t", 1), ("t", 7)])

    assert found["t", 0] == []
    assert "the producers of t [1] are not known (TOPIC_AUTHORIZATION" in str(found["t", 1])
    assert isinstance(found["t", 7], UnknownTopic)


def test_a_broker_that_has_no_question_for_producers_is_told_apart(
    admin: Admin, cluster: GroupCluster
) -> None:
    del cluster.ranges[api_keys.DESCRIBE_PRODUCERS]

    found = admin.describe_producers([("t", 0)])

    assert isinstance(found["t", 0], UnsupportedVersion)


# --- Leader epochs


def test_offsets_are_looked_up_as_readers_of_committed_records_see_them(
    admin: Admin, cluster: GroupCluster
) -> None:
    for read_committed in (False, True):
        admin.offsets({("t", 0): LATEST}, read_committed=read_committed)

    asked = cluster.requests(api_keys.LIST_OFFSETS)
    assert [one.request.isolation_level for one in asked] == [0, 1]


def test_leaders_say_where_epochs_end(admin: Admin, cluster: GroupCluster) -> None:
    log = cluster.topics["t"].logs[0]
    log.add(b"1", b"2")
    log.leader_epoch = 4
    log.add(b"3")
    cluster.topics["t"].logs[1].leader_id = 3

    found = admin.epoch_ends({("t", 0): 3, ("t", 1): 0}, {("t", 0): 4})

    assert found == {("t", 0): FoundEpoch(0, 2), ("t", 1): FoundEpoch(0, -1)}
    asked = cluster.requests(api_keys.OFFSET_FOR_LEADER_EPOCH)
    assert [one.broker_id for one in asked] == [2, 3]
    assert [one.request.topics[0].partitions[0].current_leader_epoch for one in asked] == [4, -1]
    assert {one.request.replica_id for one in asked} == {-1}


@pytest.mark.parametrize(
    ("meant", "name"), [(3, "FENCED_LEADER_EPOCH"), (5, "UNKNOWN_LEADER_EPOCH")]
)
def test_a_leader_of_another_epoch_than_is_meant_refuses_at_once(
    admin: Admin, cluster: GroupCluster, meant: int, name: str
) -> None:
    cluster.topics["t"].logs[0].leader_epoch = 4

    found = admin.epoch_ends({("t", 0): 0}, {("t", 0): meant})

    assert f"the leader epochs of t [0] are not known ({name})" in str(found["t", 0])
    assert len(cluster.requests(api_keys.OFFSET_FOR_LEADER_EPOCH)) == 1


def test_epochs_of_a_partition_whose_leader_moved_are_asked_for_again(
    admin: Admin, cluster: GroupCluster
) -> None:
    move_after_metadata(cluster)

    assert admin.epoch_ends({("t", 0): 0}) == {("t", 0): FoundEpoch(0, -1)}
    asked = cluster.requests(api_keys.OFFSET_FOR_LEADER_EPOCH)
    assert [one.broker_id for one in asked] == [2, 3]


def test_a_broker_that_cannot_tell_epochs_is_told_apart(
    admin: Admin, cluster: GroupCluster
) -> None:
    del cluster.ranges[api_keys.OFFSET_FOR_LEADER_EPOCH]

    assert isinstance(admin.epoch_ends({("t", 0): 0})["t", 0], UnsupportedVersion)
