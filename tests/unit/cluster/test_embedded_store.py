"""The embedded store: a log that is replayed at start and kept short by snapshots.

What holds for every store is in `tests/contracts`.
"""

from __future__ import annotations

import pytest
from tests.support.metadata_stores import EmbeddedSubject

from tarry.base.errors import CorruptData, InvalidSetting, StorageError
from tarry.base.partition_row import PartitionRow
from tarry.cluster.state.levels import GROUP_CONFIGS
from tarry.cluster.state.records import (
    ClusterCreated,
    FeatureLevelChanged,
    GroupConfigChanged,
    NewerFormat,
    StateReset,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.store.embedded import METADATA_DIRECTORY, SNAPSHOT_ITEMS_IN_TURN_MAX


@pytest.fixture
def subject() -> EmbeddedSubject:
    return EmbeddedSubject()


def topic(name: str) -> TopicCreated:
    row = PartitionRow(1, 0, -1, 0, [1], [1])
    return TopicCreated(
        topic_id=name.encode().ljust(16, b"."), name=name, partitions=[row], configs={}
    )


def deleted(name: str) -> TopicDeleted:
    return TopicDeleted(topic_id=topic(name).topic_id)


def removed(name: str) -> TopicRemoved:
    return TopicRemoved(topic_id=topic(name).topic_id)


def test_a_new_directory_gets_a_cluster_and_its_broker(subject: EmbeddedSubject) -> None:
    store = subject.store

    assert len(store.state.cluster_id) == 22
    assert store.state.broker_ids == [1]
    assert store.log.flushed_offset == store.log.log_end_offset == store.version


def test_the_cluster_stays_the_same_over_a_loss_of_power(subject: EmbeddedSubject) -> None:
    cluster_id = subject.store.state.cluster_id

    subject.restart()

    assert subject.store.state.cluster_id == cluster_id


def test_what_is_asked_for_counts_for_decisions_at_once(subject: EmbeddedSubject) -> None:
    subject.change(topic("orders"))

    assert subject.store.view.topic("orders") is not None
    assert subject.store.state.topic("orders") is None


def test_what_is_asked_for_during_a_flush_waits_for_the_next(subject: EmbeddedSubject) -> None:
    first = subject.change(topic("a"))
    subject.write()
    second = subject.change(topic("b"))
    late = subject.change()

    subject.flush()

    assert [first.is_ended, second.is_ended, late.is_ended] == [True, False, False]
    assert list(subject.store.view.topics) == ["a", "b"]
    subject.settle()
    assert [change for _, _, change in subject.ends.applied] == [first, second, late]


def test_a_write_that_failed_takes_along_what_was_not_written_and_nothing_else(
    subject: EmbeddedSubject,
) -> None:
    first = subject.change(topic("orders"))
    subject.write()
    second = subject.change(topic("bills"))

    subject.lose()

    assert [first.is_ended, second.is_ended] == [False, True]
    assert list(subject.store.view.topics) == ["orders"]
    subject.settle()
    assert (first.is_ended, first.refusal) == (True, "")
    subject.restart_process()
    assert list(subject.store.state.topics) == ["orders"]


def test_a_flush_that_failed_ends_no_change(subject: EmbeddedSubject) -> None:
    change = subject.change(topic("orders"))
    subject.disk.fail_flushes()

    with pytest.raises(StorageError):
        subject.settle()

    assert not change.is_ended
    assert list(subject.store.state.topics) == []
    subject.disk.heal()
    subject.restart()
    assert list(subject.store.state.topics) in ([], ["orders"])


def test_after_an_unclean_stop_every_leader_epoch_grows_by_one(subject: EmbeddedSubject) -> None:
    subject.change(topic("orders"))
    subject.settle()

    subject.restart()

    assert subject.store.state.topics["orders"].partitions[0].leader_epoch == 1


def test_after_a_clean_stop_the_leader_epochs_stay(subject: EmbeddedSubject) -> None:
    subject.change(topic("orders"))
    subject.settle()

    subject.logs.close_cleanly()
    subject.restart_process()

    assert subject.store.state.topics["orders"].partitions[0].leader_epoch == 0


def test_another_brokers_data_is_refused_with_what_to_write(subject: EmbeddedSubject) -> None:
    subject.broker_id = 2

    with pytest.raises(InvalidSetting, match=r"write node\.id=1"):
        subject.restart_process()


def test_data_of_a_newer_format_is_refused(subject: EmbeddedSubject) -> None:
    subject.store.commit_at_start([StateReset(), ClusterCreated(cluster_id="c", format=99)])

    with pytest.raises(NewerFormat, match="format 99"):
        subject.restart_process()


def test_a_damaged_store_is_refused(subject: EmbeddedSubject) -> None:
    for index in range(50):
        subject.change(topic(f"t{index}"))
    subject.settle()
    subject.logs.close_cleanly()
    subject.disk.flip_bit(f"{METADATA_DIRECTORY}/00000000000000000000.log", 700, 0)

    with pytest.raises((CorruptData, StorageError)):
        subject.restart_process()


def test_a_log_that_grew_is_made_short_by_a_snapshot() -> None:
    subject = EmbeddedSubject(snapshot_bytes_min=5_000)
    cluster_id = subject.store.state.cluster_id

    sizes = []
    for index in range(400):
        for record in (topic(f"t{index}"), deleted(f"t{index}"), removed(f"t{index}")):
            subject.change(record)
            subject.settle()
        sizes.append(subject.store.log.size_bytes)
    subject.change(topic("orders"))
    subject.settle()

    assert max(sizes) < 12_000
    assert subject.store.log.log_start_offset > 1_000
    subject.restart()
    assert subject.store.state.cluster_id == cluster_id
    assert list(subject.store.state.topics) == ["orders"]


def test_settings_of_many_groups_are_written_as_a_whole_at_a_start_alone() -> None:
    subject = EmbeddedSubject(snapshot_bytes_min=1)
    groups = [
        GroupConfigChanged(group_id=f"g{index}", configs={"consumer.heartbeat.interval.ms": "6000"})
        for index in range(SNAPSHOT_ITEMS_IN_TURN_MAX + 1)
    ]
    subject.change(FeatureLevelChanged(name=GROUP_CONFIGS, level=1), *groups)
    subject.settle()

    began_at = subject.store.log.log_start_offset
    subject.change(topic("orders"))
    subject.settle()

    assert subject.store.is_snapshot_due()
    assert subject.store.log.log_start_offset == began_at
    subject.restart_process()
    assert subject.store.log.log_start_offset > len(groups)
    assert len(subject.store.state.group_configs) == len(groups)


def test_a_start_makes_a_long_log_short(subject: EmbeddedSubject) -> None:
    for index in range(200):
        subject.change(topic(f"t{index}"), deleted(f"t{index}"))
    subject.settle()
    subject.change(*(removed(f"t{index}") for index in range(200)))
    subject.settle()

    subject.snapshot_bytes_min = 5_000
    subject.restart_process()

    assert subject.store.log.log_start_offset > 500
    assert subject.store.state.topics == {}


def test_a_snapshot_that_failed_to_be_written_loses_nothing(subject: EmbeddedSubject) -> None:
    for index in range(100):
        subject.change(topic(f"t{index}"))
    subject.settle()
    subject.store.snapshot_bytes_min = 1_000
    subject.change(topic("dropped"))
    subject.lose()

    subject.change(topic("kept"))
    subject.settle()

    topics = sorted(subject.store.state.topics)
    assert len(topics) == 101
    assert subject.store.log.log_start_offset > 100
    subject.restart()
    assert sorted(subject.store.state.topics) == topics
