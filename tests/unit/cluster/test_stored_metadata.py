"""The metadata of a stopped broker as they are read from its directory."""

from __future__ import annotations

import pytest
from tests.support.metadata_stores import EmbeddedSubject

from tarry.base.errors import CorruptData, InvalidSetting
from tarry.base.partition_row import PartitionRow
from tarry.cluster.state.records import (
    NewerFormat,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.store.embedded import METADATA_DIRECTORY
from tarry.cluster.store.stored_metadata import read_stored_state

SEGMENT = f"{METADATA_DIRECTORY}/{0:020d}.log"


def topic(number: int) -> TopicCreated:
    return TopicCreated(
        topic_id=number.to_bytes(16, "big"),
        name=f"topic-{number}",
        partitions=[PartitionRow(1, 0, -1, 0, [1], [1])] * 3,
        configs={},
    )


def change(subject: EmbeddedSubject, first: int, end: int) -> None:
    for number in range(first, end):
        subject.change(topic(number))
        subject.settle()


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("snapshot_bytes", [1 << 20, 600])
def test_they_are_those_of_the_store(snapshot_bytes: int, is_clean: bool) -> None:
    subject = EmbeddedSubject(snapshot_bytes)
    change(subject, 0, 20)
    subject.change(TopicDeleted(topic_id=topic(3).topic_id))
    subject.change(ProducerIdsReserved(first_id=0, count=1000))
    subject.settle()
    if is_clean:
        subject.logs.close_cleanly()
    files = {path: subject.disk.content(path) for path in subject.disk.paths(METADATA_DIRECTORY)}
    found = read_stored_state(subject.disk)

    assert found.snapshot() == subject.store.state.snapshot()
    assert len(found.topics) == 19
    # Nothing is written, so that another attempt finds the same.
    assert files == {
        path: subject.disk.content(path) for path in subject.disk.paths(METADATA_DIRECTORY)
    }


def test_what_a_crash_has_torn_does_not_count() -> None:
    subject = EmbeddedSubject()
    change(subject, 0, 2)
    before = subject.store.state.snapshot()
    torn = subject.disk.content(SEGMENT)
    change(subject, 2, 3)
    file = subject.disk.open(SEGMENT)
    file.truncate(len(torn) + 30)

    assert read_stored_state(subject.disk).snapshot() == before


def test_damage_is_refused() -> None:
    subject = EmbeddedSubject()
    change(subject, 0, 5)
    subject.logs.close_cleanly()
    subject.disk.flip_bit(SEGMENT, len(subject.disk.content(SEGMENT)) // 2)

    with pytest.raises(CorruptData, match="restore the directory from a copy"):
        read_stored_state(subject.disk)


def test_a_directory_without_metadata_is_refused() -> None:
    subject = EmbeddedSubject()
    subject.disk.rename(METADATA_DIRECTORY, "elsewhere")

    with pytest.raises(InvalidSetting, match="name the directory"):
        read_stored_state(subject.disk)


def test_a_directory_whose_first_start_did_not_end_is_refused() -> None:
    subject = EmbeddedSubject()
    subject.disk.open(SEGMENT).truncate(0)

    with pytest.raises(InvalidSetting, match="holds no cluster yet"):
        read_stored_state(subject.disk)


def test_a_newer_release_is_refused() -> None:
    subject = EmbeddedSubject()
    newer = TopicCreated(topic_id=bytes(16), name="new", partitions=[], configs={}, version=9)
    subject.change(newer)
    subject.settle()

    with pytest.raises(NewerFormat):
        read_stored_state(subject.disk)
