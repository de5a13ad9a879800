"""Metadata: brokers, topics, leaders and their epochs, from the latest answers.

Only topics in use are asked for.  A partition never returns to an older leader epoch of the same
topic.  A topic with another id is another topic; `when_recreated` reports it to the owner of
offsets of the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tarry.base.errors import (
    ERRORS,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_name,
)
from tarry.client.core.metadata_answer import MetadataAnswer
from tarry.client.core.topic import ZERO_ID, BrokerMetadata, PartitionMetadata, Topic
from tarry.client.errors import BrokerError, UnknownTopic
from tarry.link.errors import ClientError

# Time after which a topic that brokers deny counts as missing: new topics spread much faster.
MISSING_MS: Final = 2_000


class LeaderHint(NamedTuple):
    """A leader that an answer to Produce or Fetch names; `leader_id` is -1 if it names none."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    broker: BrokerMetadata | None


def leader_hint(
    topic: str, partition: int, leader: Any, brokers: dict[int, BrokerMetadata]
) -> LeaderHint:
    """Return the hint in an answer's field `current_leader`, which may be absent."""
    if leader is None:
        return LeaderHint(topic, partition, -1, -1, None)
    broker = brokers.get(leader.leader_id)
    return LeaderHint(topic, partition, leader.leader_id, leader.leader_epoch, broker)


class Metadata:
    """Knowledge of the cluster that this client has."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerMetadata] = {}
        self.controller_id = -1
        self.cluster_id = ""
        self.topics: dict[str, Topic] = {}
        self.names: dict[bytes, str] = {}
        # Function that is called with a topic's name when another topic has taken its place.
        self.when_recreated: Callable[[str], None] | None = None
        # Number of answers so far, by which users of the metadata see that they have changed.
        self.version = 0
        # True if all topics are asked for, as for a pattern, so that `all_topics` names them.
        self.wants_all = False
        # True if `all_topics` leaves internal topics out.
        self.excludes_internal = True
        # Function that says which topics of an answer for all topics are kept besides those in use.
        self.is_wanted: Callable[[str], object] | None = None
        self.all_topics: list[str] = []
        self._tracked: dict[str, None] = {}
        self._missing_since_ms: dict[str, int] = {}

    # --- Topics in use

    def track(self, name: str) -> bool:
        """Ask for this topic from now on; return true if it was not asked for before."""
        if name in self._tracked:
            return False
        self._tracked[name] = None
        return True

    def untrack(self, name: str) -> None:
        self._tracked.pop(name, None)
        self._missing_since_ms.pop(name, None)
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.names.pop(topic.topic_id, None)

    @property
    def tracked(self) -> list[str]:
        return list(self._tracked)

    @property
    def needs_refresh(self) -> bool:
        """True if a topic in use is unknown or lacks a leader."""
        for name in self._tracked:
            topic = self.topics.get(name)
            if topic is None or topic.needs_refresh:
                return True
        return False

    # --- Known topics

    def topic(self, name: str) -> Topic | None:
        """Return the topic with its partitions; None while it is not known to exist."""
        topic = self.topics.get(name)
        return topic if topic is not None and topic.partitions else None

    def leader_of(self, name: str, partition: int) -> PartitionMetadata | None:
        """Return the partition if it has a leader with a known address; else None."""
        topic = self.topics.get(name)
        known = topic.partitions.get(partition) if topic is not None else None
        if known is None or known.leader_id not in self.brokers:
            return None
        return known

    def topic_id(self, name: str) -> bytes:
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else ZERO_ID

    def refusal(self, name: str) -> int:
        """Return the code with which brokers refuse a topic for good, for its name or the client's
        rights; else NONE."""
        topic = self.topics.get(name)
        known = ERRORS.get(topic.error_code) if topic is not None else None
        return NONE if known is None or known.retriable else known.code

    def is_denied(self, name: str) -> bool:
        """Return true if the last answer said that there is no such topic."""
        topic = self.topics.get(name)
        return topic is not None and topic.error_code == UNKNOWN_TOPIC_OR_PARTITION

    def is_missing(self, name: str, now_ms: int) -> bool:
        """Return true if brokers have refused the topic, or have denied for a while that it
        exists."""
        topic = self.topics.get(name)
        if self.refusal(name) != NONE:
            return True
        if topic is None or topic.error_code != UNKNOWN_TOPIC_OR_PARTITION:
            return False
        return now_ms - self._missing_since_ms.get(name, now_ms) >= MISSING_MS

    def knows(self, name: str) -> bool:
        """Return true if a broker has described the topic or refused it."""
        return name in self.topics or self.refusal(name) != NONE

    def error_of(self, name: str, now_ms: int, partition: int | None = None) -> ClientError:
        """Return the error to raise for a topic or partition that cannot be used."""
        code = self.refusal(name)
        if code != NONE:
            return BrokerError(code, refusal_text(name, code))
        return UnknownTopic(self.problem_with(name, now_ms, partition))

    def problem_with(self, name: str, now_ms: int, partition: int | None = None) -> str:
        """Return a description of the trouble with a topic, and of how long it lasts, for an
        error's text."""
        topic = self.topics.get(name)
        if topic is None:
            return f"nothing is known of topic {name!r} yet"
        if partition is not None and topic.partitions and partition not in topic.partitions:
            return f"topic {name!r} has partitions 0 to {max(topic.partitions)}, not {partition}"
        since_ms = now_ms - self._missing_since_ms.get(name, now_ms)
        if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            return f"topic {name!r} does not exist"
        if topic.error_code == LEADER_NOT_AVAILABLE:
            return f"topic {name!r} is being made (for {since_ms} ms)"
        if topic.error_code != NONE:
            return f"topic {name!r}: {error_name(topic.error_code)} (for {since_ms} ms)"
        return f"topic {name!r} lacks a leader (for {since_ms} ms)"

    # --- Answers

    def apply(self, answer: MetadataAnswer, now_ms: int) -> None:
        """Apply an answer; topics that are not in use are kept only if they are wanted."""
        self.controller_id = answer.controller_id
        self.cluster_id = answer.cluster_id
        self.brokers = answer.brokers
        self.version += 1
        for topic in answer.topics:
            if self.is_kept(topic.name):
                self._apply_topic(topic, now_ms)
        if self.wants_all:
            self.all_topics = sorted(
                name
                for name, is_internal in answer.names.items()
                if name and not (is_internal and self.excludes_internal)
            )
            for name in self._tracked:
                if name not in answer.names:
                    self._apply_topic(Topic(name, UNKNOWN_TOPIC_OR_PARTITION), now_ms)

    def is_kept(self, name: str) -> bool:
        """Return true if this topic's partitions have to be kept."""
        if name in self._tracked:
            return True
        return self.wants_all and self.is_wanted is not None and bool(self.is_wanted(name))

    def _apply_topic(self, topic: Topic, now_ms: int) -> None:
        name = topic.name
        old = self.topics.get(name)
        if old is not None and old.topic_id != topic.topic_id != ZERO_ID != old.topic_id:
            if self.when_recreated is not None:
                self.when_recreated(name)
            self.names.pop(old.topic_id, None)
            old = None
        if topic.error_code != NONE and old is not None and old.partitions:
            # The known partitions are kept while the error may pass; the error is noted.
            old.error_code = topic.error_code
            topic = old
        elif old is not None:
            _keep_newer_leaders(topic, old)
        self.topics[name] = topic
        if topic.topic_id != ZERO_ID:
            self.names[topic.topic_id] = name
        if topic.needs_refresh:
            self._missing_since_ms.setdefault(name, now_ms)
        else:
            self._missing_since_ms.pop(name, None)

    def set_leader(self, hint: LeaderHint) -> bool:
        """Apply a hint; return false if it is older than the known leader."""
        topic = self.topics.get(hint.topic)
        known = topic.partitions.get(hint.partition) if topic is not None else None
        if known is None or hint.leader_epoch <= known.leader_epoch:
            return False
        if hint.broker is not None:
            self.brokers[hint.broker.broker_id] = hint.broker
        if hint.leader_id not in self.brokers:
            return False
        known.leader_id = hint.leader_id
        known.leader_epoch = hint.leader_epoch
        return True


def refusal_text(name: str, code: int) -> str:
    """Return why brokers refuse a topic for good, for the text of an error."""
    if code == INVALID_TOPIC_EXCEPTION:
        return name_flaw(name)
    return f"topic {name} cannot be used"


def name_flaw(name: str) -> str:
    """Return the sentence about a name that no topic may have."""
    return (
        f"{name!r:.60} is no name for a topic; take up to 249 letters (a to z, A to Z), digits, "
        "dots, underscores and hyphens"
    )


def _keep_newer_leaders(topic: Topic, old: Topic) -> None:
    """Keep leaders that are known from a newer epoch: a broker whose metadata lag must not send the
    client back to a former leader."""
    for index, partition in topic.partitions.items():
        known = old.partitions.get(index)
        if known is not None and partition.leader_epoch < known.leader_epoch:
            topic.partitions[index] = known
