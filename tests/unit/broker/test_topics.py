"""Hosted topics by name and by id."""

from __future__ import annotations

from tests.support.partition_scene import PartitionScene

from tarry.broker.topics import Topics
from tarry.partition.topic import HostedTopic

OLD = b"o" * 16
NEW = b"n" * 16


def test_a_topic_is_found_by_its_name_and_by_its_id() -> None:
    topics = Topics()
    orders = HostedTopic("orders", OLD)

    topics.add(orders)

    assert topics.get("orders") is topics["orders"] is topics.with_id(OLD) is orders
    assert "orders" in topics
    assert "bills" not in topics
    assert (topics.get("bills"), topics.with_id(NEW)) == (None, None)


def test_names_are_sorted() -> None:
    topics = Topics()
    topics.add(HostedTopic("orders", OLD))
    topics.add(HostedTopic("bills", NEW))

    assert topics.names() == ["bills", "orders"]
    assert [hosted.name for hosted in topics.all()] == ["orders", "bills"]


def test_the_successor_of_a_name_stays_when_the_old_topic_is_removed() -> None:
    topics = Topics()
    old, new = HostedTopic("orders", OLD), HostedTopic("orders", NEW)
    topics.add(old)
    topics.add(new)

    removed = topics.remove(OLD)

    assert removed is old
    assert topics.get("orders") is new
    assert topics.remove(OLD) is None


def test_a_removed_topic_is_found_no_more() -> None:
    topics = Topics()
    topics.add(HostedTopic("orders", OLD))

    topics.remove(OLD)

    assert (topics.get("orders"), topics.with_id(OLD), len(topics)) == (None, None, 0)


def test_partitions_are_found_by_topic_and_index() -> None:
    partition = PartitionScene().partition
    topics = Topics()
    hosted = HostedTopic("orders", OLD)
    topics.add(hosted)
    hosted.partitions[0] = partition

    assert topics.partition("orders", 0) is partition
    assert topics.partition("orders", 1) is None
    assert topics.partition("bills", 0) is None
    assert topics.partitions() == [partition]
