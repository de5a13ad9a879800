"""Topics: the subscription of a member, by name or by pattern, and the topics that a leader
watches.

A leader watches the topics of all members.  It remembers how many partitions each topic had when it
assigned and, if the leader has a rack itself, the racks of their replicas (KIP-881): if a topic
grows or replicas move to other racks, the group must assign again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tarry.base.ids import TopicPartition
from tarry.client.core.metadata import Metadata


class TopicSubscription:
    """Subscription of one member, compared with the cluster's metadata."""

    def __init__(self, metadata: Metadata, rack: str) -> None:
        self.metadata = metadata
        self._rack = rack
        self.subscribed: list[str] = []
        self.pattern: re.Pattern[str] | None = None
        self._group_topics: list[str] = []
        self._snapshot: dict[str, int] = {}
        self._racks: dict[TopicPartition, tuple[str, ...]] = {}
        # Versions of the metadata that the snapshot and the pattern were last compared with.
        self._seen_version = -1
        self._matched_version = -1
        self._pattern_since = 0

    @property
    def is_subscribed(self) -> bool:
        return bool(self.subscribed) or self.pattern is not None

    @property
    def is_known(self) -> bool:
        """True unless a pattern still waits for the list of topics."""
        return self.pattern is None or self.metadata.version > self._pattern_since

    @property
    def in_use(self) -> list[str]:
        """Topics whose metadata is needed."""
        return list(dict.fromkeys([*self.subscribed, *self._group_topics]))

    def subscribe(self, names: Sequence[str]) -> None:
        self.pattern = None
        self.metadata.wants_all = False
        self.subscribed = list(dict.fromkeys(names))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.metadata.wants_all = True
        self.metadata.is_wanted = pattern.search
        self._pattern_since = self.metadata.version
        self._matched_version = -1
        self.subscribed = []

    def follow_group(self, names: Sequence[str]) -> None:
        """Track the topics of the group: a leader needs the topics of all members, another member
        only its own."""
        self._group_topics = list(names)
        self._snapshot = {}

    @property
    def has_group_topics(self) -> bool:
        """True if metadata has an answer about each topic of the group, even if it is "does not
        exist"."""
        topics = self.metadata.topics
        return all(
            name in topics and bool(topics[name].partitions or topics[name].error_code)
            for name in self._group_topics
        )

    def take_snapshot(self) -> dict[str, int]:
        """Return the partition count of each topic that exists, and keep it for `change`."""
        self._snapshot = {name: self._count(name) for name in self._group_topics}
        self._racks = self.partition_racks() if self._rack else {}
        return {name: count for name, count in self._snapshot.items() if count > 0}

    def partition_racks(self) -> dict[TopicPartition, tuple[str, ...]]:
        """Return the racks of the replicas of each partition of the snapshot, each once, sorted."""
        brokers = self.metadata.brokers
        racks = {broker_id: broker.rack or "" for broker_id, broker in brokers.items()}
        if not any(racks.values()):
            return {}
        found: dict[TopicPartition, tuple[str, ...]] = {}
        for name, count in self._snapshot.items():
            for index, partition in self.metadata.topics[name].partitions.items() if count else ():
                near = dict.fromkeys(racks.get(broker_id, "") for broker_id in partition.replicas)
                found[name, index] = tuple(sorted(rack for rack in near if rack))
        return found

    def _count(self, name: str) -> int:
        topic = self.metadata.topics.get(name)
        return len(topic.partitions) if topic is not None else 0

    def change(self, *, is_leader: bool) -> str:
        """Return why the newest metadata requires a new round; empty if it does not."""
        return self._new_match() or (self._growth() if is_leader else "")

    def _new_match(self) -> str:
        version = self.metadata.version
        if self.pattern is None or version == self._matched_version or not self.is_known:
            return ""
        self._matched_version = version
        find = self.pattern.search
        matching = [name for name in self.metadata.all_topics if find(name)]
        if matching == self.subscribed:
            return ""
        self.subscribed = matching
        return f"{len(matching)} topics match the pattern now"

    def _growth(self) -> str:
        if self.metadata.version == self._seen_version:
            return ""
        for name, count in self._snapshot.items():
            now = self._count(name)
            if now != count:
                return f"topic {name} has {now} partitions, not {count}"
        if self._racks and (moved := self._move()):
            return moved
        self._seen_version = self.metadata.version
        return ""

    def _move(self) -> str:
        """Return which partition has replicas in other racks than in the snapshot; empty if none.
        Partitions with an absent broker are not compared."""
        brokers = self.metadata.brokers
        for (name, index), racks in self.partition_racks().items():
            before = self._racks.get((name, index), racks)
            replicas = self.metadata.topics[name].partitions[index].replicas
            if racks != before and all(broker_id in brokers for broker_id in replicas):
                return f"{name} [{index}] is in the racks {_listed(racks)}, not {_listed(before)}"
        return ""


def _listed(racks: tuple[str, ...]) -> str:
    return ", ".join(racks) or "none"
