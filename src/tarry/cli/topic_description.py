"""What `tarry topics describe` shows of one topic."""

from __future__ import annotations

import base64

import click

from tarry.cli.tables import count_of, print_table
from tarry.client.core.admin_calls import ConfigEntry
from tarry.client.core.lookup import EARLIEST, LATEST
from tarry.client.core.metadata import Topic
from tarry.client.sync.admin import Admin


class TopicDescription:
    """One topic with the offsets of its partitions and its settings."""

    def __init__(self, topic: Topic, configs: list[ConfigEntry]) -> None:
        self.topic = topic
        self.configs = configs
        # By partition; None where the leader did not tell.
        self.begins: dict[int, int | None] = {}
        self.ends: dict[int, int | None] = {}

    def print(self, *, all_configs: bool) -> None:
        topic = self.topic
        partitions = count_of(len(topic.partitions), "partition")
        click.echo(f"{topic.name}  {id_text(topic.topic_id)}  {partitions}")
        rows = [
            [
                index,
                partition.leader_id if partition.leader_id >= 0 else "none",
                partition.leader_epoch,
                _ids(partition.replicas),
                _ids(partition.isr),
                _offset(self.begins.get(index)),
                _offset(self.ends.get(index)),
            ]
            for index, partition in topic.partitions.items()
        ]
        titles = ["partition", "leader", "epoch", "replicas", "isr", "begin", "end"]
        print_table(titles, rows)
        shown = [one for one in self.configs if all_configs or not one.is_default]
        if shown:
            click.echo()
            print_table(
                ["setting", "value", "from"],
                [[one.name, "" if one.value is None else one.value, one.source] for one in shown],
            )

    def as_json(self, *, all_configs: bool) -> dict[str, object]:
        return {
            **topic_json(self.topic),
            "partitions": [
                {
                    "partition": index,
                    "leader_id": partition.leader_id,
                    "leader_epoch": partition.leader_epoch,
                    "replicas": partition.replicas,
                    "isr": partition.isr,
                    "begin_offset": self.begins.get(index),
                    "end_offset": self.ends.get(index),
                }
                for index, partition in self.topic.partitions.items()
            ],
            "settings": {
                one.name: one.value for one in self.configs if all_configs or not one.is_default
            },
        }


def describe_topic(admin: Admin, topic: Topic, timeout: float) -> TopicDescription:
    description = TopicDescription(topic, admin.describe_topic_configs(topic.name, timeout))
    led = [index for index, one in topic.partitions.items() if one.leader_id >= 0]
    for offsets, time in ((description.begins, EARLIEST), (description.ends, LATEST)):
        wanted = {(topic.name, index): time for index in led}
        for (_, index), found in admin.offsets(wanted, timeout).items():
            offsets[index] = getattr(found, "offset", None)
    return description


def id_text(topic_id: bytes) -> str:
    """As Kafka's tools print it: 22 characters of base64url."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _ids(broker_ids: list[int]) -> str:
    return ",".join(str(broker_id) for broker_id in broker_ids)


def _offset(offset: int | None) -> int | str:
    return "?" if offset is None else offset


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
