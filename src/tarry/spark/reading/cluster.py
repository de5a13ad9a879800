"""Cluster as a reader asks it: topics with ids and partitions, ends of logs, offsets at times.

The door of the driver's side: all that lies behind it is pure or Spark's.  Clients are made with
the first question and closed by `close`; a copy that Spark pickles has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from tarry.base.ids import TopicPartition, id_text
from tarry.client import LATEST, Admin, BrokerError, Consumer, FoundEpochs, FoundOffset
from tarry.client.settings import CLIENT_SETTINGS, COMMON, READ_COMMITTED, ConsumerSettings
from tarry.spark.histories.lines import LogEnd
from tarry.spark.reading.bounds import TopicChoice

# Id of a topic of a broker that gives none.
ZERO_ID = bytes(16)

CLEANUP_POLICY: Final = "cleanup.policy"


@dataclass(frozen=True)
class FoundTopic:
    """Topic as it is now."""

    topic_id: str
    partitions: tuple[int, ...]

    def has(self, partition: int) -> bool:
        return partition in self._by_number

    @cached_property
    def _by_number(self) -> dict[int, None]:
        return dict.fromkeys(self.partitions)


class TopicLogs(Protocol):
    """Questions of a reader to a cluster."""

    def topics(self, choice: TopicChoice) -> dict[str, FoundTopic]:
        """Find the topics that are chosen, as far as they are there."""
        ...

    def starts(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Find the first offset of each log."""
        ...

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Find the offset behind the last record that may be read."""
        ...

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Find the first offset at or after each time; -1 where no record is that young."""
        ...


class LiveCluster:
    """Cluster behind two clients: one asks for topics, one for offsets as readers see them."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._admin_made: Admin | None = None
        self._consumer_made: Consumer | None = None

    @property
    def _admin(self) -> Admin:
        if self._admin_made is None:
            of_admins = {
                key: text
                for key, text in self._settings.items()
                if CLIENT_SETTINGS[key].scope == COMMON
            }
            self._admin_made = Admin(of_admins)
        return self._admin_made

    @property
    def _reads_committed(self) -> bool:
        return ConsumerSettings(self._settings).isolation_level == READ_COMMITTED

    @property
    def _consumer(self) -> Consumer:
        if self._consumer_made is None:
            # A topic that is gone is not to be made by asking for it.
            settings = {**self._settings, "allow.auto.create.topics": "false"}
            self._consumer_made = Consumer(settings)
        return self._consumer_made

    def cluster_id(self) -> str:
        """Return the cluster's id."""
        return self._admin.describe_cluster().cluster_id or ""

    def topics(self, choice: TopicChoice) -> dict[str, FoundTopic]:
        if choice.pattern:
            found = [
                topic
                for topic in self._admin.list_topics()
                if choice.takes(topic.name) and not topic.is_internal
            ]
        else:
            names = choice.names or tuple(choice.assigned)
            found = list(self._admin.find_topics(names).values())
        topics: dict[str, FoundTopic] = {}
        for topic in sorted(found, key=lambda topic: topic.name):
            topic_id = "" if topic.topic_id == ZERO_ID else id_text(topic.topic_id)
            partitions = tuple(sorted(topic.partitions))
            if choice.assigned:
                wanted = choice.assigned[topic.name]
                partitions = tuple(one for one in partitions if one in wanted)
            topics[topic.name] = FoundTopic(topic_id, partitions)
        return topics

    def starts(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._consumer.beginning_offsets(places)

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._consumer.end_offsets(places)

    def log_ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Find the ends as `ends` does, each with the leader's epoch."""
        wanted = dict.fromkeys(places, LATEST)
        found: dict[TopicPartition, LogEnd] = {}
        answers = self._admin.offsets(wanted, read_committed=self._reads_committed)
        for place, answer in answers.items():
            if not isinstance(answer, FoundOffset):
                raise answer
            found[place] = LogEnd(answer.offset, answer.leader_epoch)
        return found

    def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int]
    ) -> FoundEpochs:
        """Find where epochs end in the logs of these leaders."""
        return self._admin.epoch_ends(epochs, leader_epochs)

    def is_compacted(self, topic: str) -> bool:
        """Tell whether a topic is compacted; true for one whose settings are not told."""
        try:
            entries = self._admin.describe_topic_configs(topic)
        except BrokerError:
            # Not every user may ask.
            return True
        policies = [one.value or "" for one in entries if one.name == CLEANUP_POLICY]
        return not policies or "compact" in policies[0]

    def renew(self) -> None:
        """Forget who leads: clients are made anew."""
        self.close()

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._consumer.offsets_for_times(times)

    def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, int], seconds_max: float
    ) -> None:
        """Commit offsets of a group without members."""
        self._admin.commit_group_offsets(group_id, offsets, seconds_max)

    def close(self) -> None:
        """Close the clients."""
        for client in (self._admin_made, self._consumer_made):
            if client is not None:
                client.close()
        self._admin_made = self._consumer_made = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_admin_made": None, "_consumer_made": None}
