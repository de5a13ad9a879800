"""Sizes of topics: bytes as the brokers' log directories tell, records as offsets tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tarry.base.ids import TopicPartition
from tarry.cli.group_look import offsets_of_led
from tarry.cli.tables import SizeCell
from tarry.cli.units import size_text
from tarry.client import EARLIEST, LATEST, Admin, ClientError, PartitionMetadata, Topic


class TopicSizes:
    """Offsets and bytes of partitions; those that no broker reported are missing."""

    def __init__(self) -> None:
        self.begins: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.bytes: dict[TopicPartition, int] = {}

    def records(self, at: TopicPartition) -> int | None:
        """Offsets from the first to the end: compaction may have taken records out."""
        if at not in self.begins or at not in self.ends:
            return None
        return self.ends[at] - self.begins[at]

    def topic_records(self, topic: Topic) -> int | None:
        """Sum the records over the topic's partitions; None if one of them is not known."""
        return _sum([self.records((topic.name, index)) for index in topic.partitions])

    def topic_bytes(self, topic: Topic) -> int | None:
        return _sum([self.bytes.get((topic.name, index)) for index in topic.partitions])


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def sizes_of(admin: Admin, topics: Sequence[Topic], timeout: float) -> TopicSizes:
    """Ask the leaders for offsets and all brokers for bytes."""
    sizes = TopicSizes()
    for offsets, time in ((sizes.begins, EARLIEST), (sizes.ends, LATEST)):
        offsets.update(offsets_of_led(admin, topics, time, timeout))
    sizes.bytes = _bytes_of(admin, topics, timeout)
    return sizes


def _bytes_of(admin: Admin, topics: Sequence[Topic], timeout: float) -> dict[TopicPartition, int]:
    """Return the bytes of each partition: its leader's replica, or the largest one told of."""
    wanted = {topic.name: list(topic.partitions) for topic in topics}
    if not wanted:
        return {}
    try:
        directories = admin.describe_log_dirs(wanted, timeout)
    except ClientError:
        # Old brokers do not know the request, and others refuse it to some users.
        return {}
    leaders = {
        (topic.name, index): one.leader_id
        for topic in topics
        for index, one in topic.partitions.items()
    }
    found: dict[TopicPartition, int] = {}
    led: dict[TopicPartition, int] = {}
    for directory in directories:
        for replica in directory.replicas:
            if replica.is_future:
                continue
            found[replica.place] = max(found.get(replica.place, 0), replica.size_bytes)
            if leaders.get(replica.place) == directory.broker_id:
                led[replica.place] = replica.size_bytes
    return {**found, **led}


def size_cell(size: int | None) -> str:
    return "?" if size is None else SizeCell(size_text(size))


def count_cell(count: int | None) -> int | str:
    return "?" if count is None else count


def state_of(partition: PartitionMetadata) -> str:
    """Return the state of a partition in a word or two; `ok` if nothing is wrong."""
    if partition.leader_id < 0:
        return "no leader"
    if partition.leader_id in partition.offline_replicas:
        return "damaged"
    if partition.offline_replicas:
        return "replica offline"
    if len(partition.isr) < len(partition.replicas):
        return "under-replicated"
    return "ok"
