"""Descriptions of topics for `tarry topics describe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from tarry.base.ids import id_text
from tarry.cli.tables import bad, count_of, print_table, strong
from tarry.cli.topic_schedule import TopicSchedule, schedule_of
from tarry.cli.topic_sizes import TopicSizes, count_cell, size_cell, sizes_of, state_of
from tarry.cli.units import size_text
from tarry.client import Admin, ConfigEntry, Topic


class TopicDescription:
    """Topic with the sizes of its partitions, its settings and its scheduled records."""

    def __init__(
        self,
        topic: Topic,
        configs: list[ConfigEntry],
        sizes: TopicSizes | None = None,
        schedule: TopicSchedule | None = None,
    ) -> None:
        self.topic = topic
        self.schedule = schedule
        self.configs = configs
        self.sizes = sizes or TopicSizes()

    def print(self, *, all_configs: bool, problems: bool = False) -> None:
        topic = self.topic
        facts = [
            strong(topic.name),
            id_text(topic.topic_id),
            count_of(len(topic.partitions), "partition"),
            _told(self.sizes.topic_records(topic), lambda count: count_of(count, "record")),
            _told(self.sizes.topic_bytes(topic), size_text),
        ]
        click.echo("  ".join(fact for fact in facts if fact))
        rows = [
            self._row(index)
            for index, partition in topic.partitions.items()
            if not problems or state_of(partition) != "ok"
        ]
        titles = ["partition", "leader", "epoch", "replicas", "isr"]
        titles += ["begin", "end", "records", "size", "state"]
        print_table(titles, rows)
        if self.schedule is not None and not problems:
            click.echo()
            for line in self.schedule.lines():
                click.echo(line)
        shown = [one for one in self.configs if all_configs or not one.is_default]
        if shown and not problems:
            click.echo()
            print_table(
                ["setting", "value", "from"],
                [[one.name, "" if one.value is None else one.value, one.source] for one in shown],
            )

    def _row(self, index: int) -> list[object]:
        partition = self.topic.partitions[index]
        at = (self.topic.name, index)
        state = state_of(partition)
        return [
            index,
            partition.leader_id if partition.leader_id >= 0 else "none",
            partition.leader_epoch,
            _ids(partition.replicas),
            _ids(partition.isr),
            count_cell(self.sizes.begins.get(at)),
            count_cell(self.sizes.ends.get(at)),
            count_cell(self.sizes.records(at)),
            size_cell(self.sizes.bytes.get(at)),
            state if state == "ok" else bad(state),
        ]

    @property
    def has_problems(self) -> bool:
        return any(state_of(one) != "ok" for one in self.topic.partitions.values())

    def as_json(self, *, all_configs: bool) -> dict[str, object]:
        topic = self.topic
        return {
            **topic_json(topic),
            "records": self.sizes.topic_records(topic),
            "size_bytes": self.sizes.topic_bytes(topic),
            "partitions": [self._partition_json(index) for index in topic.partitions],
            "settings": {
                one.name: one.value for one in self.configs if all_configs or not one.is_default
            },
            "scheduled": None if self.schedule is None else self.schedule.as_json(),
        }

    def _partition_json(self, index: int) -> dict[str, object]:
        partition = self.topic.partitions[index]
        at = (self.topic.name, index)
        return {
            "partition": index,
            "leader_id": partition.leader_id,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "offline_replicas": partition.offline_replicas,
            "begin_offset": self.sizes.begins.get(at),
            "end_offset": self.sizes.ends.get(at),
            "records": self.sizes.records(at),
            "size_bytes": self.sizes.bytes.get(at),
            "state": state_of(partition),
        }


def describe_topics(
    admin: Admin, topics: Sequence[Topic], timeout: float
) -> list[TopicDescription]:
    """Describe the topics with their sizes, settings and scheduled records."""
    sizes = sizes_of(admin, topics, timeout)
    found = []
    for topic in topics:
        configs = admin.describe_topic_configs(topic.name, timeout)
        schedule = schedule_of(admin, topic.name, configs, timeout)
        found.append(TopicDescription(topic, configs, sizes, schedule))
    return found


def _told(number: int | None, text: Callable[[int], str]) -> str:
    return "" if number is None else text(number)


def _ids(broker_ids: list[int]) -> str:
    return ",".join(str(broker_id) for broker_id in broker_ids)


def replication_of(topic: Topic) -> int:
    return max((len(one.replicas) for one in topic.partitions.values()), default=0)


def topic_json(topic: Topic) -> dict[str, object]:
    return {
        "topic": topic.name,
        "topic_id": id_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": replication_of(topic),
        "is_internal": topic.is_internal,
    }
