"""The cluster's state: what each record changes, snapshots, and what is pending."""

from __future__ import annotations

import random

import pytest

from tarry.base.ids import id_text, random_id
from tarry.base.partition_row import PartitionRow
from tarry.cluster.state.records import (
    EVERY_BROKER,
    BrokerConfigChanged,
    BrokerRegistered,
    BrokerStartedUncleanly,
    ClusterCreated,
    ConfigChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state.state import ClusterState

ORDERS = b"o" * 16
BILLS = b"b" * 16


def topic(name: str, topic_id: bytes, partitions: int = 1) -> TopicCreated:
    rows = [PartitionRow(1, 0, -1, 0, [1], [1]) for _ in range(partitions)]
    return TopicCreated(topic_id=topic_id, name=name, partitions=rows, configs={})


def state_of(*records: MetadataRecord) -> ClusterState:
    state = ClusterState()
    for record in records:
        state.apply(record)
    return state


def test_a_created_topic_is_found_by_name_and_by_id():
    state = state_of(topic("orders", ORDERS, 3))

    assert state.topic("orders") is state.topic_by_id(ORDERS)
    assert len(state.topics["orders"].partitions) == 3
    assert state.partition_count == 3


def test_a_deleted_topic_stays_known_until_its_data_is_removed():
    state = state_of(topic("orders", ORDERS, 3), TopicDeleted(topic_id=ORDERS))

    assert state.topic("orders") is None
    assert state.topic_by_id(ORDERS) is None
    assert state.is_being_deleted("orders")
    assert state.deleted_topics[ORDERS].partition_count == 3

    state.apply(TopicRemoved(topic_id=ORDERS))

    assert not state.is_being_deleted("orders")
    assert state.deleted_topics == {}
    assert state.partition_count == 0


def test_names_that_clash_are_found():
    state = state_of(topic("a.b", ORDERS))

    assert state.topic_like("a_b") == "a.b"
    assert state.topic_like("a.c") is None


def test_an_unclean_start_raises_every_leader_epoch_by_one():
    state = state_of(
        topic("orders", ORDERS, 2), topic("bills", BILLS), BrokerStartedUncleanly(broker_id=1)
    )

    epochs = [
        partition.leader_epoch for each in state.topics.values() for partition in each.partitions
    ]
    assert epochs == [1, 1, 1]


def test_a_topics_settings_are_replaced_as_a_whole():
    state = state_of(
        topic("orders", ORDERS),
        ConfigChanged(topic_id=ORDERS, configs={"a": "1", "b": "2"}),
        ConfigChanged(topic_id=ORDERS, configs={"b": "3"}),
    )

    assert state.topics["orders"].configs == {"b": "3"}


def test_a_topic_grows_behind_the_partitions_that_it_has():
    state = state_of(
        topic("orders", ORDERS, 2),
        BrokerStartedUncleanly(broker_id=1),
        PartitionsAdded(topic_id=ORDERS, partitions=[PartitionRow(1, 0, -1, 0, [1], [1])] * 2),
    )

    partitions = state.topics["orders"].partitions
    assert [each.leader_epoch for each in partitions] == [1, 1, 0, 0]
    assert state.partition_count == 4


def test_a_brokers_settings_are_replaced_as_a_whole_and_apart_from_those_of_all():
    state = state_of(
        BrokerConfigChanged(broker_id=1, configs={"a": "1", "b": "2"}),
        BrokerConfigChanged(broker_id=EVERY_BROKER, configs={"a": "3"}),
        BrokerConfigChanged(broker_id=1, configs={"b": "4"}),
    )

    assert state.configs_of_broker(1) == {"b": "4"}
    assert state.configs_of_broker(EVERY_BROKER) == {"a": "3"}
    assert state.configs_of_broker(2) == {}


def test_a_snapshot_says_everything_whatever_came_before():
    state = state_of(
        ClusterCreated(cluster_id="c"),
        BrokerRegistered(broker_id=1),
        topic("a.b", ORDERS, 2),
        TopicDeleted(topic_id=ORDERS),
        # A topic that would clash with the one whose data is still there.
        topic("a_b", BILLS, 3),
        ProducerIdsReserved(first_id=0, count=1000),
        BrokerStartedUncleanly(broker_id=1),
        PartitionsAdded(topic_id=BILLS, partitions=[PartitionRow(1, 0, -1, 0, [1], [1])]),
        BrokerConfigChanged(broker_id=1, configs={"a": "1"}),
        BrokerConfigChanged(broker_id=EVERY_BROKER, configs={"a": "2"}),
    )
    other = state_of(ClusterCreated(cluster_id="d"), topic("other", b"x" * 16))

    for record in state.snapshot():
        other.apply(record)

    assert other.snapshot() == state.snapshot()
    assert other.cluster_id == "c"
    assert other.is_being_deleted("a.b")
    assert other.topics["a_b"].partitions[2].leader_epoch == 1
    assert len(other.topics["a_b"].partitions) == 4
    assert other.broker_configs == {-1: {"a": "2"}, 1: {"a": "1"}}
    assert other.producer_id_end == 1000


def test_what_an_overlay_applies_counts_there_and_not_below():
    state = state_of(topic("orders", ORDERS))
    above = state.overlay()

    above.apply(topic("a.b", BILLS))
    above.apply(TopicDeleted(topic_id=ORDERS))
    above.apply(ConfigChanged(topic_id=BILLS, configs={"a": "1"}))

    created = above.topic("a.b")
    assert created is not None
    assert created.configs == {"a": "1"}
    assert above.topic_like("a_b") == "a.b"
    assert above.topic("orders") is None
    assert above.topic_by_id(ORDERS) is None
    assert above.is_being_deleted("orders")
    assert state.topic("a.b") is None
    assert state.topic("orders") is not None


def test_growth_and_settings_in_an_overlay_do_not_touch_the_state_below():
    state = state_of(topic("orders", ORDERS), BrokerConfigChanged(broker_id=1, configs={"a": "1"}))
    above = state.overlay()

    for _ in range(2):
        above.apply(
            PartitionsAdded(topic_id=ORDERS, partitions=[PartitionRow(1, 0, -1, 0, [1], [1])])
        )
    above.apply(BrokerConfigChanged(broker_id=1, configs={}))

    assert len(above.topics["orders"].partitions) == 3
    assert above.configs_of_broker(1) == {}
    assert len(state.topics["orders"].partitions) == 1
    assert state.configs_of_broker(1) == {"a": "1"}


def test_every_record_gives_in_an_overlay_what_it_gives_in_a_state():
    records: list[MetadataRecord] = [
        ClusterCreated(cluster_id="c"),
        BrokerRegistered(broker_id=1),
        topic("a.b", ORDERS, 2),
        PartitionsAdded(topic_id=ORDERS, partitions=[PartitionRow(1, 0, -1, 0, [1], [1])]),
        BrokerStartedUncleanly(broker_id=1),
        TopicDeleted(topic_id=ORDERS),
        topic("a_b", BILLS, 3),
        TopicRemoved(topic_id=ORDERS),
        ProducerIdsReserved(first_id=0, count=1000),
        BrokerConfigChanged(broker_id=1, configs={"a": "1"}),
        ConfigChanged(topic_id=BILLS, configs={"a": "1"}),
        TopicDeleted(topic_id=BILLS),
        TopicRemoved(topic_id=BILLS),
        topic("a_b", ORDERS, 3),
    ]

    for split in range(len(records) + 1):
        above = state_of(*records[:split]).overlay()
        for record in records[split:]:
            above.apply(record)

        below = state_of(*records)
        assert above.snapshot() == below.snapshot()
        assert len(above.topics) == len(below.topics)
        assert above.partition_count == 3


def test_records_that_are_applied_together_come_to_the_same():
    def row(topic_id: bytes, index: int, epoch: int) -> PartitionChanged:
        changed = PartitionRow(1, epoch, -1, epoch, [1], [1])
        return PartitionChanged(topic_id=topic_id, index=index, row=changed)

    records = [
        topic("orders", ORDERS, 3),
        topic("bills", BILLS, 2),
        row(ORDERS, 0, 1),
        row(ORDERS, 2, 1),
        row(ORDERS, 0, 2),
        row(BILLS, 1, 3),
        ConfigChanged(topic_id=BILLS, configs={"a": "1"}),
        row(BILLS, 0, 4),
        row(ORDERS, 1, 5),
    ]
    state = ClusterState()
    state.apply_all(records)

    assert state.snapshot() == state_of(*records).snapshot()
    assert [each.leader_epoch for each in state.topics["orders"].partitions] == [2, 5, 1]


def test_nothing_but_apply_changes_a_state():
    state = state_of(topic("orders", ORDERS))

    with pytest.raises(AttributeError):
        state.topics = {}  # type: ignore[misc]
    with pytest.raises(AttributeError):
        state.topics["orders"].configs = {}  # type: ignore[misc]
    with pytest.raises(AttributeError):
        state.topics["orders"].partitions[0].leader_epoch = 7  # type: ignore[misc]


def test_a_random_id_is_no_option_and_no_reserved_id():
    source = random.Random(7)

    texts = [id_text(random_id(source)) for _ in range(2_000)]

    assert all(len(text) == 22 and not text.startswith("-") for text in texts)
    assert len(set(texts)) == len(texts)
    # Version and variant of a random UUID, by which no reserved id can come out.
    assert all(drawn[6] >> 4 == 4 and drawn[8] >> 6 == 2 for drawn in [random_id(source)])
