"""Arguments that consumers and admin clients refuse: a sentence with the way out, and no change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.client.scripted_cluster import seeded_random
from tests.support.client.scripted_groups import GroupCluster

from tarry.base.errors import InvalidSetting
from tarry.client.core.admin.calls import CreateTopics, NewTopic
from tarry.client.core.admin.core import AdminCore
from tarry.client.errors import NotSubscribed
from tarry.client.settings import ClientSettings
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.listener import Listener
from tarry.client.sync.producer import Producer
from tarry.link.errors import InvalidRequest

T0 = ("t", 0)
NOBODY = "127.0.0.1:1"

Action = Callable[[Consumer], object]


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    """One that reads partition 0 of topic t from offset 5 on, without a broker."""
    with Consumer(bootstrap_servers=NOBODY) as made:
        made.assign([T0])
        made.seek("t", 0, 5)
        yield made


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (lambda one: one.assign([("u", 0), ("t", "0")]), r'such as \("orders", 0\)'),
        (lambda one: one.assign("t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.assign([("t", -1)]), "no partition -1"),
        (lambda one: one.assign([("t", 2**31)]), "no partition 2147483648"),
        (lambda one: one.assign([("\ud800", 0)]), "is no name for a topic"),
        (lambda one: one.partitions_of(5), "topic is of type int"),
        (lambda one: one.partitions_of("\ud800"), "is no name for a topic"),
        (lambda one: one.offsets_for_times([T0]), "takes times such as"),
        (lambda one: one.seek("t", 1, 0), r"t \[1\] is not read by this consumer"),
        (lambda one: one.seek("t", 0, -1), "seek_to_beginning"),
        (lambda one: one.seek("t", 0, "0"), "an offset as an int"),
        (lambda one: one.seek_to_beginning([T0, ("u", 0)]), r"assign\(\[\('u', 0\)\]\)"),
        (lambda one: one.seek_to_time(1.5), "milliseconds"),
        (lambda one: one.pause([T0, ("u", 0)]), r"u \[0\] is not read"),
        (lambda one: one.resume([T0, ("u", 0)]), r"u \[0\] is not read"),
        (lambda one: one.position("u", 0), r"u \[0\] is not read"),
        (lambda one: one.lag("u", 0), r"u \[0\] is not read"),
        (lambda one: one.commit({T0: "7"}), "an offset as an int"),
        (lambda one: one.commit(7), r"offsets such as"),
        (lambda one: one.committed("t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.end_offsets([("t",)]), r'such as \("orders", 0\)'),
        (lambda one: one.subscribe(["u"], Listener()), "group.id"),
        (lambda one: one.subscribe([1]), "names as str"),
        (lambda one: one.subscribe(re.compile(b"t")), "pattern of text"),
    ],
)
def test_a_refused_call_says_what_to_do_and_changes_nothing(
    consumer: Consumer, action: Action, sentence: str
) -> None:
    listener = consumer._listener

    with pytest.raises((TypeError, ValueError, NotSubscribed), match=sentence):
        action(consumer)

    assert consumer.assignment() == [T0]
    assert consumer.position("t", 0) == 5
    assert consumer._listener is listener
    assert not consumer._core.position(T0).is_paused


@pytest.mark.parametrize("made", [lambda: Consumer(42), lambda: Consumer(["a", "b"])])
def test_a_consumer_of_something_else_than_names_is_refused(made: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match='Consumer\\("orders", group_id="billing"\\)'):
        made()


@pytest.mark.parametrize("made", [lambda: Producer("host:9092"), lambda: Admin("host:9092")])
def test_an_address_in_place_of_settings_is_refused(made: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r'\(bootstrap_servers="localhost:9092"\)'):
        made()


@pytest.mark.parametrize(
    "settings",
    [
        {"bootstrap.servers": None},
        {"bootstrap.servers": [NOBODY, 5]},
        {"bootstrap.servers": 9092},
        {"client.id": "\ud800"},
        {"client.id": "x" * 40_000},
        {1: "x"},
    ],
)
def test_a_setting_that_no_request_can_carry_is_refused(settings: Any) -> None:
    with pytest.raises(InvalidSetting):
        Producer({"bootstrap.servers": NOBODY, **settings})


@pytest.mark.parametrize("topic", [5, None, "", "\ud800"])
def test_a_producer_counts_no_partitions_of_what_is_no_topic(topic: Any) -> None:
    with Producer(bootstrap_servers=NOBODY) as producer, pytest.raises((TypeError, ValueError)):
        producer.partition_count(topic)


def test_subscribing_without_a_group_names_both_ways_out() -> None:
    with pytest.raises(NotSubscribed, match=r"needs a group.id; to read without a group.* assign"):
        Consumer("t")


def test_one_name_in_place_of_several_is_refused() -> None:
    with Admin(bootstrap_servers=NOBODY) as admin, pytest.raises(TypeError, match=r'\["orders"\]'):
        admin.describe_topics("orders")


def test_a_request_that_cannot_be_encoded_ends_its_call_and_no_other() -> None:
    cluster = GroupCluster()
    settings = ClientSettings(bootstrap_servers="10.0.0.1:9092")
    core = cluster.attach(AdminCore(settings, seeded_random(), cluster.now_ms))
    flawed: Any = "many"
    bad = CreateTopics([NewTopic("a", flawed)], validate_only=False)
    good = CreateTopics([NewTopic("b", 1)], validate_only=False)

    core.begin_call(bad, 5_000, cluster.now_ms)
    core.begin_call(good, 5_000, cluster.now_ms)
    cluster.run_until(lambda: bad.is_done and good.is_done)

    assert isinstance(bad.error, InvalidRequest)
    assert "CreateTopics cannot be sent" in str(bad.error)
    assert good.error is None
    assert "b" in cluster.topics


def test_clients_say_what_they_are_connected_to(consumer: Consumer) -> None:
    with Producer(bootstrap_servers=NOBODY) as producer:
        assert repr(producer) == "<Producer 127.0.0.1:1>"
    assert repr(producer) == "<Producer 127.0.0.1:1 closed>"
    assert repr(consumer) == "<Consumer 127.0.0.1:1 without a group, 1 partition>"
