"""The store in etcd: conflicts, lost answers, late deeds, a watch that is behind."""

from __future__ import annotations

import random
from functools import partial

import pytest
from tests.support.metadata_stores import SETTINGS_FOR_TESTS, EtcdSubject, GivenChange

from tarry.base import errors
from tarry.base.etcd import Put
from tarry.base.partition_row import PartitionRow
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.producer_ids import ReserveProducerIds
from tarry.cluster.decisions.topic_decisions import (
    TopicChange,
    TopicIds,
    TopicWanted,
    decide_create_topics,
    decide_delete_topics,
)
from tarry.cluster.etcd.etcd_store import CHANGE_MS_MAX, RETRY_MS
from tarry.cluster.etcd.transactions import ConditionalChange, Transaction
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    ConfigChanged,
    MetadataRecord,
    PartitionChanged,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state.state import ClusterState


@pytest.fixture
def subject() -> EtcdSubject:
    return EtcdSubject()


def topic(name: str, count: int = 1) -> TopicCreated:
    # The broker's life begins in revision 2.
    row = PartitionRow(1, 0, 2, 0, [1], [1])
    topic_id = random.Random(name).randbytes(16)
    return TopicCreated(topic_id=topic_id, name=name, partitions=[row] * count, configs={})


def creation(*names: str) -> TopicChange:
    wanted = [TopicWanted(name, 1) for name in names]
    ids = TopicIds(random.Random(7))
    return TopicChange(
        partial(decide_create_topics, wanted=wanted, settings=SETTINGS_FOR_TESTS, ids=ids)
    )


def growth(name: str, count: int) -> TopicChange:
    return TopicChange(partial(decide_create_partitions, wanted=[GrowthWanted(name, count)]))


def deletion(name: str) -> TopicChange:
    return TopicChange(partial(decide_delete_topics, wanted=[(name, None)]))


def ask(subject: EtcdSubject, *changes: TopicChange) -> list[int]:
    """Ask for these changes, and return the error code of each outcome."""
    for change in changes:
        subject.store.change(change)
    subject.settle()
    return [outcome.error_code for change in changes for outcome in change.outcomes]


def assert_as_read_anew(subject: EtcdSubject) -> None:
    """The state is what a broker reads that starts now."""
    known = subject.store.state.snapshot()
    subject.restart()
    assert sorted(map(repr, subject.store.state.snapshot())) == sorted(map(repr, known))


class CountingKeys(Keys):
    """Keys that count how often the key of a single partition is made."""

    parts_made = 0

    def part(self, topic_id: bytes, index: int) -> bytes:
        self.parts_made += 1
        return super().part(topic_id, index)


def test_a_topic_that_grows_costs_by_what_is_added(subject: EtcdSubject) -> None:
    keys = subject.keys = CountingKeys("/test/")
    subject.restart()
    orders = topic("orders", 500)
    subject.change(orders)
    subject.settle()
    led = PartitionRow(1, 1, 2, 1, [1], [1])
    for index in (0, 499):
        subject.change(PartitionChanged(topic_id=orders.topic_id, index=index, row=led))
        subject.settle()
    keys.parts_made = 0

    codes = ask(subject, growth("orders", 1_000))

    assert codes == [errors.NONE]
    assert keys.parts_made < 10
    partitions = subject.store.state.topics["orders"].partitions
    assert [index for index, row in enumerate(partitions) if row == led] == [0, 499]
    assert len(partitions) == 1_000
    assert subject.ends.replica.topics["orders"].partitions == partitions
    assert_as_read_anew(subject)


def test_every_kind_of_record_comes_back_as_it_was_written(subject: EtcdSubject) -> None:
    orders = topic("orders", 2)
    written = [
        orders,
        ConfigChanged(topic_id=orders.topic_id, configs={"retention.ms": "5"}),
        BrokerConfigChanged(broker_id=-1, configs={"max.connections": "9"}),
        ProducerIdsReserved(first_id=0, count=1_000),
    ]
    for record in written:
        subject.change(record)
        subject.settle()

    assert [record for _, records, _ in subject.ends.applied for record in records] == written
    assert_as_read_anew(subject)


def test_records_of_one_change_on_one_topic_are_one_row(subject: EtcdSubject) -> None:
    orders = topic("orders")
    configs = {"retention.ms": "5"}
    subject.change(orders, ConfigChanged(topic_id=orders.topic_id, configs=configs))
    subject.settle()

    assert subject.store.state.topics["orders"].configs == configs
    assert_as_read_anew(subject)


def test_a_topic_that_is_deleted_is_remembered_until_its_data_is_gone(
    subject: EtcdSubject,
) -> None:
    assert ask(subject, creation("orders")) == [errors.NONE]
    topic_id = subject.store.state.topics["orders"].topic_id

    assert ask(subject, deletion("orders")) == [errors.NONE]
    being_deleted = subject.store.state.is_being_deleted("orders")
    assert_as_read_anew(subject)
    still = subject.store.state.is_being_deleted("orders")
    subject.change(TopicRemoved(topic_id=topic_id))
    subject.settle()

    assert (being_deleted, still) == (True, True)
    assert not subject.store.state.is_being_deleted("orders")
    assert_as_read_anew(subject)


def test_what_others_changed_is_told_without_a_change(subject: EtcdSubject) -> None:
    subject.interfere(topic("theirs"))

    subject.run(lambda: "theirs" in subject.store.state.topics)

    assert subject.ends.applied == [(subject.store.version, [topic("theirs")], None)]


def test_a_change_that_comes_second_is_decided_on_what_came_first(subject: EtcdSubject) -> None:
    mine = creation("orders", "bills")
    subject.store.change(mine)
    subject.interfere(topic("orders"))

    subject.settle()

    assert [each.error_code for each in mine.outcomes] == [
        errors.TOPIC_ALREADY_EXISTS,
        errors.NONE,
    ]
    assert subject.store.state.topics["orders"].topic_id == topic("orders").topic_id
    assert_as_read_anew(subject)


def test_a_change_that_comes_second_waits_for_the_watch_and_no_longer(
    subject: EtcdSubject,
) -> None:
    subject.door.watch_limit = subject.etcd.revision
    mine = creation("bills", "orders")
    subject.store.change(mine)
    subject.interfere(topic("orders"))
    for _ in range(60):
        subject.step()
    assert not mine.is_ended
    subject.door.watch_limit = None
    began_ms = subject.etcd.now_ms
    subject.settle()

    # Two ways of 20 ms at most, and the watch.
    assert subject.etcd.now_ms - began_ms < RETRY_MS / 2


def test_names_that_clash_are_refused_across_brokers(subject: EtcdSubject) -> None:
    mine = creation("a.b")
    subject.store.change(mine)
    subject.interfere(topic("a_b"))

    subject.settle()

    assert [each.error_code for each in mine.outcomes] == [errors.INVALID_TOPIC_EXCEPTION]


def test_a_growth_that_comes_second_grows_what_has_grown(subject: EtcdSubject) -> None:
    ask(subject, creation("orders"))
    topic_id = subject.store.state.topics["orders"].topic_id
    mine = growth("orders", 3)
    subject.store.change(mine)
    subject.interfere(ConfigChanged(topic_id=topic_id, configs={"retention.ms": "5"}))

    subject.settle()

    found = subject.store.state.topics["orders"]
    assert (len(found.partitions), found.configs) == (3, {"retention.ms": "5"})


def test_a_creation_knows_its_own_deed_whose_answer_was_lost(subject: EtcdSubject) -> None:
    mine = creation("orders")
    subject.door.lose_answers = 1
    subject.store.change(mine)

    subject.settle()

    (outcome,) = mine.outcomes
    assert (outcome.error_code, mine.is_ended, mine.refusal) == (errors.NONE, True, "")
    assert outcome.topic_id == subject.store.state.topics["orders"].topic_id
    assert_as_read_anew(subject)


def test_a_deed_that_comes_late_is_not_done_twice(subject: EtcdSubject) -> None:
    ask(subject, creation("orders"))
    subject.door.delay_ms_max = 6_000

    codes = ask(subject, growth("orders", 3))

    assert codes == [errors.NONE]
    assert len(subject.store.state.topics["orders"].partitions) == 3
    subject.door.delay_ms_max = 0
    for _ in range(2_000):
        subject.step()
    assert_as_read_anew(subject)


def test_a_block_of_producer_ids_that_others_took_first_is_passed_over(
    subject: EtcdSubject,
) -> None:
    change = ReserveProducerIds()
    subject.store.change(change)
    subject.interfere(ProducerIdsReserved(first_id=0, count=1_000))

    subject.settle()

    assert change.first_id == 1_000
    assert subject.store.state.producer_id_end == 2_000


def test_a_watch_that_was_cut_goes_on_where_it_was(subject: EtcdSubject) -> None:
    subject.door.go_away()
    subject.interfere(topic("a"))
    subject.interfere(topic("b"))
    subject.door.come_back()

    subject.run(lambda: "b" in subject.store.state.topics)

    assert [records for _, records, _ in subject.ends.applied] == [[topic("a")], [topic("b")]]


def test_what_was_compacted_away_is_read_as_a_difference(subject: EtcdSubject) -> None:
    ask(subject, creation("kept", "lost"))
    lost = subject.store.state.topics["lost"].topic_id
    subject.door.go_away()
    subject.interfere(topic("new"))
    subject.interfere(TopicDeleted(topic_id=lost))
    subject.etcd.compact(subject.etcd.revision)
    subject.door.come_back()

    subject.run(lambda: "new" in subject.store.state.topics)

    assert sorted(subject.store.state.topics) == ["kept", "new"]
    assert subject.ends.replica.snapshot() == subject.store.state.snapshot()
    assert_as_read_anew(subject)


def test_what_a_watch_has_lost_is_read_once_a_change_shows_it(
    subject: EtcdSubject, caplog: pytest.LogCaptureFixture
) -> None:
    """No watch tells it any more, and a change that rests on it fails as often as it is tried."""
    ask(subject, creation("orders"))
    topic_id = subject.store.state.topics["orders"].topic_id
    subject.door.lost_revisions[subject.etcd.revision + 1] = None
    subject.interfere(ConfigChanged(topic_id=topic_id, configs={"retention.ms": "5"}))
    subject.settle()
    before = subject.store.state.topics["orders"].configs
    began_ms = subject.etcd.now_ms

    assert ask(subject, growth("orders", 3)) == [errors.NONE]
    after = subject.store.state.topics["orders"]
    assert (before, after.configs, len(after.partitions)) == ({}, {"retention.ms": "5"}, 3)
    assert subject.etcd.now_ms - began_ms < CHANGE_MS_MAX // 2
    assert "has not told" in caplog.text
    assert_as_read_anew(subject)


class Impossible(ConditionalChange):
    """A change whose guard never holds, whatever is read."""

    def __init__(self) -> None:
        super().__init__()
        self.decided = 0

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self.decided += 1
        return [ProducerIdsReserved(first_id=view.producer_id_end, count=1)]

    def guard(self, transaction: Transaction) -> None:
        transaction.guard_life(1, 999)


def test_a_change_that_never_holds_reads_everything_once_and_is_tried_with_pauses(
    subject: EtcdSubject, caplog: pytest.LogCaptureFixture
) -> None:
    change = Impossible()
    subject.store.change(change)
    subject.settle()

    assert change.refusal
    assert change.decided < 2 * CHANGE_MS_MAX / RETRY_MS + 10
    assert caplog.text.count("has not told") == 1
    assert ask(subject, creation("orders")) == [errors.NONE]


def test_a_silent_watch_is_made_anew(subject: EtcdSubject) -> None:
    subject.door.watch_limit = subject.etcd.revision
    subject.interfere(topic("theirs"))
    for _ in range(400):
        subject.step()
    before = list(subject.store.state.topics)
    subject.door.watch_limit = None

    subject.run(lambda: "theirs" in subject.store.state.topics)

    assert before == []


def test_a_change_while_etcd_is_away_is_made_when_it_is_back_in_time(
    subject: EtcdSubject,
) -> None:
    subject.door.go_away()
    mine = creation("orders")
    subject.store.change(mine)
    for _ in range(400):
        subject.step()
    waiting = mine.is_ended
    subject.door.come_back()

    subject.settle()

    assert (waiting, mine.is_ended, mine.refusal) == (False, True, "")


def test_a_change_while_etcd_is_away_for_long_is_refused(subject: EtcdSubject) -> None:
    subject.door.go_away()
    mine = creation("orders")
    subject.store.change(mine)

    subject.settle()

    assert mine.refusal == "etcd does not answer; nothing was changed"
    assert [each.name for each in mine.outcomes] == ["orders"]


MANY = [BrokerConfigChanged(broker_id=each, configs={"a": "1"}) for each in range(10, 139)]
LARGE = [BrokerConfigChanged(broker_id=1, configs={"a": "x" * 2_000_000})]


@pytest.mark.parametrize("records", [MANY, LARGE])
def test_what_no_transaction_holds_is_refused_at_once_and_holds_nobody_up(
    subject: EtcdSubject, records: list[BrokerConfigChanged]
) -> None:
    large = GivenChange(*records)
    mine = creation("orders")
    subject.store.change(large)
    ended = large.is_ended
    subject.store.change(mine)
    subject.settle()

    assert ended
    assert "ask for less in one request" in large.refusal
    assert (mine.is_ended, mine.refusal) == (True, "")


@pytest.mark.parametrize("text", ['[2,"shared"]', "[9]"])
def test_a_row_of_a_newer_format_stops_no_broker_that_runs(
    subject: EtcdSubject, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    subject.etcd.transact([], [Put(subject.keys.cluster, text.encode())])

    subject.run(lambda: subject.store.version >= subject.etcd.revision)

    assert subject.failures == []
    assert subject.store.state.cluster_id == "shared"
    assert "/test/cluster in format" in caplog.text


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b"{}", b"[1]", b"[1,5]", b"[1,null]"])
def test_a_damaged_row_is_named(subject: EtcdSubject, value: bytes) -> None:
    subject.etcd.transact([], [Put(subject.keys.cluster, value)])

    subject.run(lambda: bool(subject.failures))

    assert "/test/cluster in etcd cannot be read" in subject.failures[0]
