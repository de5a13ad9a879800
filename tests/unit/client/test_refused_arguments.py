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
from tarry.client.core.admin.configs import SET, ConfigChange
from tarry.client.core.admin.core import AdminCore
from tarry.client.errors import NotSubscribed
from tarry.client.settings import CLIENT_SETTINGS, ClientSettings
from tarry.client.settings_foreign import _TABLE
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
        (lambda one: one.pause(("t", 0)), r"put the one into a list, \[\('t', 0\)\]"),
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
        (lambda one: one.position(["t"], 0), r"position takes a topic's name"),
        (lambda one: one.lag("t", "0"), r"lag takes a topic's name"),
        (lambda one: one.is_at_end({}, 0), r"is_at_end takes a topic's name"),
        (lambda one: one.poll("1"), "timeout='1' is no number: give seconds"),
        (lambda one: one.poll(-1), "timeout=-1 is not between 0 and"),
        (lambda one: one.poll(True), "timeout=True is no number"),
        (lambda one: one.poll(float("nan")), "timeout=nan is not between"),
        (lambda one: one.partitions_of("t", float("inf")), "every wait has a limit"),
        (lambda one: one.poll(0, 0), "max_records=0 is less than 1"),
        (lambda one: one.poll(0, "5"), "max_records='5' is no whole number"),
        (lambda one: next(one.batches(-1)), "max_records=-1 is less than 1"),
        (lambda one: one.close("soon"), "timeout='soon' is no number"),
        (lambda one: one.commit({T0: "7"}), "an offset as an int"),
        (lambda one: one.commit(7), r"offsets such as"),
        (lambda one: one.committed("t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.end_offsets([("t",)]), r'such as \("orders", 0\)'),
        (lambda one: one.subscribe(["u"], Listener()), "group.id"),
        (
            lambda one: one.subscribe(["u"], print),
            r"is no tarry\.client\.Listener: make a subclass",
        ),
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


def test_an_address_in_the_place_of_a_topic_is_refused() -> None:
    with pytest.raises(ValueError, match="give bootstrap_servers='localhost:9092'"):
        Consumer("localhost:9092", group_id="billing")


def test_a_listener_that_no_poll_could_call_is_refused() -> None:
    listener: Any = print
    with pytest.raises(TypeError, match=r"is no tarry\.client\.Listener: make a subclass"):
        Consumer("t", bootstrap_servers=NOBODY, group_id="g", listener=listener)


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


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    with Admin(bootstrap_servers=NOBODY) as made:
        yield made


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (lambda one: one.describe_topics("orders"), r'\["orders"\]'),
        (lambda one: one.delete_topics("orders"), r'\["orders"\]'),
        (lambda one: one.list_topics("5"), "timeout='5' is no number"),
        (lambda one: one.create_topics("orders"), r'such as \[NewTopic\("a", 3\)\]'),
        (lambda one: one.create_topics(["orders"]), r'such as NewTopic\("a", 3\)'),
        (lambda one: one.create_topics([NewTopic(b"t")]), "topic is of type bytes.*decode it"),
        (lambda one: one.create_topics([NewTopic("t", "3")]), "partition_count='3' is no whole"),
        (lambda one: one.create_topics([NewTopic("t", 1, 2**31)]), "replication_factor=2147483648"),
        (lambda one: one.create_topics([NewTopic("t", configs=[1])]), "configs=.* is no mapping"),
        (lambda one: one.create_topics([NewTopic("t", configs={"a": 1})]), "values as str"),
        (lambda one: one.create_topics([NewTopic("t", assignment=[1])]), r"such as \[\[1, 2\]"),
        (lambda one: one.create_partitions("t", "4"), "count='4' is no whole number"),
        (lambda one: one.create_partitions("t", 4, assignment="12"), r"such as \[\[1, 2\]"),
        (lambda one: one.create_partitions(None, 4), "topic is of type NoneType"),
        (lambda one: one.delete_records([T0]), r'such as \{\("orders", 0\): 42\}'),
        (lambda one: one.delete_records({T0: -5}), "-5 is no offset"),
        (lambda one: one.delete_records({T0: -1.0}), "an offset as an int"),
        (lambda one: one.delete_records({"t": 5}), r'such as \("orders", 0\)'),
        (lambda one: one.describe_topic_configs(5), "topic is of type int"),
        (lambda one: one.describe_broker_configs("1"), "broker_id='1' is no whole number"),
        (lambda one: one.change_topic_configs("t", {"a": "b"}), r"such as \[ConfigChange"),
        (lambda one: one.change_topic_configs("t", [("a", 0, "b")]), "such as ConfigChange"),
        (lambda one: one.change_topic_configs("t", [ConfigChange("a", 7, "b")]), "none of SET"),
        (lambda one: one.change_topic_configs("t", [ConfigChange("a", SET)]), "DELETE has no val"),
        (lambda one: one.change_broker_configs(1, [ConfigChange("a", SET, 5)]), "values as str"),
        (lambda one: one.change_broker_configs(-1, []), "broker_id=-1 is not between 0"),
        (lambda one: one.list_groups("Stable"), r'\["orders"\]'),
        (lambda one: one.describe_groups("g"), r'\["orders"\]'),
        (lambda one: one.delete_groups([5]), "names as str"),
        (lambda one: one.group_memory(5), "names as str"),
        (lambda one: one.group_offsets("g"), r'\["orders"\]'),
        (lambda one: one.group_offsets(["g"], "t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.commit_group_offsets(5, {T0: 1}), "names as str"),
        (lambda one: one.commit_group_offsets("g", [T0]), r'such as \{\("orders", 0\): 42\}'),
        (lambda one: one.delete_group_offsets("g", "t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.api_versions("1"), "broker_id='1' is no whole number"),
        (lambda one: one.describe_log_dirs(["t"]), r'such as \{"orders": \[0, 1\]\}'),
        (lambda one: one.describe_log_dirs({"t": "0"}), r'such as \{"orders": \[0\]\}'),
        (lambda one: one.describe_producers("t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.epoch_ends([T0]), r'such as \{\("orders", 0\): 3\}'),
        (lambda one: one.epoch_ends({T0: -1}), "-1 is no leader epoch"),
        (lambda one: one.epoch_ends({T0: 0}, {T0: "3"}), "as an int, not '3'"),
        (lambda one: one.elect_leaders("t"), r'such as \[\("orders", 0\)\]'),
        (lambda one: one.list_partition_reassignments([0]), r'such as \("orders", 0\)'),
        (lambda one: one.alter_partition_reassignments([T0]), r'\{\("orders", 0\): \[1, 2\]\}'),
        (lambda one: one.alter_partition_reassignments({T0: "12"}), "ids of brokers"),
        (lambda one: one.unregister_broker(None), "broker_id=None is no whole number"),
        (lambda one: one.unregister_broker(-1), "broker_id=-1 is not between 0"),
        (lambda one: one.update_features("f=1"), r'such as \{"tarry.group.configs": 1\}'),
        (lambda one: one.update_features({"f": "1"}), "f='1' is no whole number"),
        (lambda one: one.update_features({"f": 40_000}), "f=40000 is not between 0 and 32767"),
        (lambda one: one.offsets([T0]), r'such as \{\("orders", 0\): LATEST\}'),
        (lambda one: one.offsets({T0: "latest"}), "or EARLIEST, LATEST or MAX_TIMESTAMP"),
        (lambda one: one.offsets({T0: -7}), "-7 is no time"),
    ],
)
def test_an_administrator_asks_nothing_that_is_of_a_wrong_type(
    admin: Admin, action: Callable[[Any], object], sentence: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        action(admin)

    assert not admin._core.errands.are_waiting


# --- Settings


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"bootstrap_servers": ["a:1", 2]}, "neither text nor a list of texts"),
        ({"bootstrap_servers": "http://a:9092"}, "leave out what is before //"),
        ({"linger_ms": 1.5}, "linger.ms=1.5: it must be a whole number"),
        ({"linger_ms": None}, "linger.ms=None: it must be a whole number"),
        ({"enable_idempotence": 1}, "enable.idempotence=1: it must be True or False"),
        ({"acks": True}, "acks=True is no text"),
        ({"group_id": "g"}, "group.id is a setting of a consumer; this is a producer"),
        ({"bootstrap_server": NOBODY}, "did you mean bootstrap.servers?"),
        ({"ssl_cafile": "ca.pem"}, "there is no TLS yet"),
        ({"sasl_plain_username": "me"}, "there is no SASL yet"),
        ({"value_serializer": str}, "use the argument value with a codec"),
        ({"api_version": (2, 0)}, "agreed upon with each broker"),
        ({"queue.buffering.max.ms": 5}, "use linger.ms"),
        ({"error_cb": print}, "errors are raised"),
        ({"transactional.id": "x"}, "there are no transactions yet"),
    ],
)
def test_a_setting_of_another_client_or_type_names_the_right_one(
    given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        Producer(given) if any("." in key for key in given) else Producer(**given)


def test_an_administrator_names_itself_when_a_setting_is_anothers() -> None:
    arguments: Any = {"linger_ms": 5}
    with pytest.raises(InvalidSetting, match="a setting of a producer; this is an admin client"):
        Admin(**arguments)


def test_no_setting_of_ours_is_called_foreign_and_every_hint_names_one_that_is_there() -> None:
    for line in _TABLE.strip().splitlines():
        name, hint = line.split(maxsplit=1)

        assert name not in CLIENT_SETTINGS
        named = re.match(r"use ([a-z.]+)", hint)
        if named and "." in named[1] and not named[1].startswith("the"):
            assert named[1].rstrip(".") in CLIENT_SETTINGS, line


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
