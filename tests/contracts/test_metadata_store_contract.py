"""One suite over all metadata stores: a change is asked for and ends once, applied or refused."""

from __future__ import annotations

import random
from functools import partial

import pytest
from msgspec.structs import replace
from tests.support.metadata_stores import EmbeddedSubject, EtcdSubject, SharedSubject, Subject

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.producer_ids import NONE_LEFT, ProducerIds, ReserveProducerIds
from tarry.cluster.decisions.topic_decisions import (
    TopicChange,
    TopicIds,
    TopicWanted,
    decide_create_topics,
    decide_delete_topics,
)
from tarry.cluster.state.levels import GROUP_CONFIGS
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    ConfigChanged,
    FeatureLevelChanged,
    GroupConfigChanged,
    MetadataRecord,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change

SETTINGS = Settings({})
CHANCE = random.Random(7)


@pytest.fixture(params=["embedded", "embedded, short", "shared", "etcd"])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "etcd":
        return EtcdSubject()
    if request.param == "shared":
        return SharedSubject()
    return EmbeddedSubject(1 if request.param == "embedded, short" else 1 << 20)


@pytest.fixture
def shared() -> SharedSubject:
    return SharedSubject()


def topic(name: str) -> TopicCreated:
    row = PartitionRow(1, 0, -1, 0, [1], [1])
    return TopicCreated(
        topic_id=name.encode().ljust(16, b"."), name=name, partitions=[row], configs={}
    )


def without_life(record: MetadataRecord) -> MetadataRecord:
    """Return a creation without its leaders' lives, which a shared store adds."""
    assert isinstance(record, TopicCreated)
    rows = [replace(row, broker_epoch=-1) for row in record.partitions]
    return replace(record, partitions=rows)


def creation(*names: str) -> TopicChange:
    wanted = [TopicWanted(name, 1) for name in names]
    ids = TopicIds(CHANCE)
    return TopicChange(partial(decide_create_topics, wanted=wanted, settings=SETTINGS, ids=ids))


def deletion(name: str) -> TopicChange:
    return TopicChange(partial(decide_delete_topics, wanted=[(name, None)]))


def growth(name: str, count: int) -> TopicChange:
    return TopicChange(partial(decide_create_partitions, wanted=[GrowthWanted(name, count)]))


class SettingChange(Change):
    """Sets one key of a topic, and leaves the others as they are."""

    def __init__(self, name: str, key: str, value: str) -> None:
        super().__init__()
        self.name = name
        self.setting = {key: value}

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        found = view.topics[self.name]
        configs = {**found.configs, **self.setting}
        return [ConfigChanged(topic_id=found.topic_id, configs=configs)]


def ask(subject: Subject, *changes: Change) -> None:
    for change in changes:
        subject.store.change(change)


def codes(*changes: TopicChange) -> list[int]:
    return [outcome.error_code for change in changes for outcome in change.outcomes]


def test_a_change_counts_when_it_is_durable_and_not_before(subject: Subject) -> None:
    version = subject.store.version

    change = subject.change(topic("orders"))
    before = (change.is_ended, list(subject.store.state.topics), subject.store.version)
    subject.settle()

    assert before == (False, [], version)
    assert (change.is_ended, change.refusal) == (True, "")
    assert list(subject.store.state.topics) == ["orders"]
    assert subject.store.version > version
    applied, *_ = subject.ends.applied
    assert [applied] == subject.ends.applied
    assert (applied[0], applied[2]) == (subject.store.version, change)
    assert [without_life(record) for record in applied[1]] == change.records


def test_feature_levels_and_settings_of_groups_are_kept(subject: Subject) -> None:
    subject.change(
        FeatureLevelChanged(name=GROUP_CONFIGS, level=1),
        GroupConfigChanged(group_id="a/b ü", configs={"k": "1"}),
        GroupConfigChanged(group_id="gone", configs={"k": "1"}),
    )
    subject.settle()
    subject.change(GroupConfigChanged(group_id="gone", configs={}))
    subject.settle()
    kept = (dict(subject.store.state.feature_levels), dict(subject.store.state.group_configs))
    subject.restart()

    assert kept == ({GROUP_CONFIGS: 1}, {"a/b ü": {"k": "1"}})
    assert dict(subject.store.state.feature_levels) == kept[0]
    assert dict(subject.store.state.group_configs) == kept[1]


def test_a_level_may_be_lowered_to_nothing(subject: Subject) -> None:
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=1))
    subject.settle()
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=0))
    subject.settle()
    subject.restart()

    assert dict(subject.store.state.feature_levels) == {}


def test_a_change_that_is_told_is_in_the_state_already(subject: Subject) -> None:
    seen: list[list[str]] = []
    told = subject.ends.on_applied

    def look(version: int, records: list[MetadataRecord], change: Change | None) -> None:
        seen.append(list(subject.store.state.topics))
        assert subject.store.version >= version
        told(version, records, change)

    subject.ends.on_applied = look  # type: ignore[method-assign]
    subject.change(topic("orders"))
    subject.settle()

    assert seen == [["orders"]]


def test_changes_end_in_the_order_in_which_they_were_asked_for(subject: Subject) -> None:
    changes = [subject.change(topic(name)) for name in ("a", "b", "c")]
    subject.settle()

    assert [change for _, _, change in subject.ends.applied] == changes
    versions = [version for version, _, _ in subject.ends.applied]
    assert versions == sorted({*versions})


def test_the_records_told_give_the_state(subject: Subject) -> None:
    for name in ("a", "b"):
        subject.change(topic(name))
        subject.settle()
    subject.change(TopicDeleted(topic_id=topic("a").topic_id))
    subject.change(BrokerConfigChanged(broker_id=1, configs={"a": "1"}))
    subject.lose()
    subject.change(BrokerConfigChanged(broker_id=1, configs={"b": "2"}))
    subject.settle()

    assert subject.ends.replica.snapshot() == subject.store.state.snapshot()


def test_what_is_durable_is_there_after_a_crash(subject: Subject) -> None:
    subject.change(topic("orders"))
    subject.settle()
    version = subject.store.version

    subject.restart()

    assert list(subject.store.state.topics) == ["orders"]
    assert subject.store.version >= version
    assert subject.store.view.snapshot() == subject.store.state.snapshot()


def test_a_crash_before_a_change_is_durable_keeps_all_of_it_or_nothing(subject: Subject) -> None:
    subject.change(topic("a"), topic("b"))
    subject.change(topic("c"))

    subject.restart()

    assert list(subject.store.state.topics) in ([], ["a", "b"], ["a", "b", "c"])
    assert subject.ends.applied == []


def test_a_change_without_records_ends_by_itself(subject: Subject) -> None:
    change = subject.change()
    subject.settle()

    assert (change.is_ended, change.refusal) == (True, "")
    assert subject.ends.applied == [(subject.store.version, [], change)]


def test_a_change_without_records_waits_for_what_it_rests_on(subject: Subject) -> None:
    first, second = creation("orders"), creation("orders")

    ask(subject, first, second)
    before = [first.is_ended, second.is_ended]
    subject.settle()

    assert before == [False, False]
    assert codes(first, second) == [errors.NONE, errors.TOPIC_ALREADY_EXISTS]
    assert [change for _, _, change in subject.ends.applied] == [first, second]


def test_what_is_refused_leaves_nothing_and_may_be_asked_again(subject: Subject) -> None:
    subject.change(topic("kept"))
    subject.settle()

    lost = subject.change(topic("orders"), ProducerIdsReserved(first_id=0, count=5))
    subject.lose()

    assert lost.is_ended
    assert subject.refusal in lost.refusal
    assert subject.ends.refused == [lost]
    assert list(subject.store.view.topics) == ["kept"]
    assert subject.store.view.producer_id_end == 0
    again = subject.change(topic("orders"))
    subject.settle()
    assert (again.is_ended, again.refusal) == (True, "")
    subject.restart()
    assert list(subject.store.state.topics) == ["kept", "orders"]


def test_what_rests_on_a_refused_change_is_refused(subject: Subject) -> None:
    first, second = creation("orders"), creation("orders")

    ask(subject, first, second)
    subject.lose()

    assert [first.refusal != "", second.refusal != ""] == [True, True]
    assert list(subject.store.state.topics) == []


def test_every_change_ends_once(subject: Subject) -> None:
    changes = [subject.change(topic(f"t{index}")) for index in range(3)]
    subject.settle()
    changes += [subject.change(topic(f"u{index}")) for index in range(3)]
    subject.lose()
    changes += [subject.change(topic(f"u{index}")) for index in range(3)]
    subject.settle()
    subject.settle()

    ended = [change for _, _, change in subject.ends.applied] + subject.ends.refused
    assert len(ended) == len(changes)
    assert all(change in ended for change in changes)


def test_a_creation_and_a_deletion_leave_nothing_but_the_data_to_be_removed(
    subject: Subject,
) -> None:
    created, deleted, again = creation("orders"), deletion("orders"), creation("orders")

    ask(subject, created)
    subject.settle()
    ask(subject, deleted, again)
    subject.settle()

    assert codes(created, deleted, again) == [
        errors.NONE,
        errors.NONE,
        errors.TOPIC_ALREADY_EXISTS,
    ]
    assert list(subject.store.state.topics) == []
    assert subject.store.state.is_being_deleted("orders")


def test_settings_that_are_changed_at_once_are_all_kept(subject: Subject) -> None:
    ask(subject, creation("orders"))
    subject.settle()

    ask(subject, SettingChange("orders", "a", "1"), SettingChange("orders", "b", "2"))
    subject.settle()

    assert subject.store.state.topics["orders"].configs == {"a": "1", "b": "2"}


def test_growths_that_are_asked_for_at_once_come_one_after_the_other(subject: Subject) -> None:
    ask(subject, creation("orders"))
    subject.settle()

    changes = [growth("orders", 3), growth("orders", 3), growth("orders", 4)]
    ask(subject, *changes)
    subject.settle()

    assert codes(*changes) == [errors.NONE, errors.INVALID_PARTITIONS, errors.NONE]
    assert len(subject.store.state.topics["orders"].partitions) == 4


def test_a_change_that_is_decided_again_keeps_what_it_drew(subject: Subject) -> None:
    change = creation("a", "b")
    drawn = [record.topic_id for record in change.decide(subject.store.view)]  # type: ignore[attr-defined]

    ask(subject, change)
    subject.settle()

    assert [subject.store.state.topics[name].topic_id for name in ("a", "b")] == drawn
    assert [outcome.topic_id for outcome in change.outcomes] == drawn


def test_no_producer_id_is_given_out_twice(subject: Subject) -> None:
    taken: list[int] = []
    for life in range(3):
        ids = ProducerIds(subject.store)
        assert ids.take() == NONE_LEFT
        first, second = ids.reserve(), ids.reserve()
        assert first is second
        if life == 1:
            subject.lose()
            assert ids.take() == NONE_LEFT
            ids.reserve()
        subject.settle()
        taken += [ids.take() for _ in range(1_000)]
        assert ids.take() == NONE_LEFT
        subject.restart()

    assert NONE_LEFT not in taken
    assert len({*taken}) == len(taken) == 3_000


# -- stores that others write to


def test_what_others_changed_is_told_without_a_change(shared: SharedSubject) -> None:
    shared.interfere(topic("theirs"))

    shared.store.catch_up()

    assert shared.ends.applied == [(2, [topic("theirs")], None)]


def test_a_change_that_comes_second_is_decided_on_what_came_first(shared: SharedSubject) -> None:
    mine = creation("orders", "bills")
    ask(shared, mine)
    shared.interfere(topic("orders"))

    shared.settle()

    assert codes(mine) == [errors.TOPIC_ALREADY_EXISTS, errors.NONE]
    assert shared.store.state.topics["orders"].topic_id == topic("orders").topic_id
    assert shared.ends.replica.snapshot() == shared.store.state.snapshot()


def test_a_creation_knows_its_own_deed_whose_answer_was_lost(shared: SharedSubject) -> None:
    mine = creation("orders")
    ask(shared, mine)
    shared.store.lost_answers = 1

    shared.settle()

    (outcome,) = mine.outcomes
    assert (outcome.error_code, mine.is_ended, mine.refusal) == (errors.NONE, True, "")
    assert outcome.topic_id == shared.store.state.topics["orders"].topic_id
    assert outcome.created == shared.store.state.topics["orders"].record()


def test_a_block_of_producer_ids_that_others_took_first_is_passed_over(
    shared: SharedSubject,
) -> None:
    change = ReserveProducerIds()
    ask(shared, change)
    shared.interfere(ProducerIdsReserved(first_id=0, count=1_000))

    shared.settle()

    assert change.first_id == 1_000
    assert shared.store.state.producer_id_end == 2_000
