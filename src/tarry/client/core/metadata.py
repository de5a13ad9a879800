"""Metadata: brokers, topics, leaders and their epochs, from the latest answers.

Only topics in use are asked for.  A partition never goes back to an older leader epoch of the
same topic; a topic with another id is another topic, and whoever holds offsets of the old one is
told by `when_recreated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from tarry.base.errors import (
    ERRORS,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_name,
)
from tarry.client.errors import BrokerError, UnknownTopic
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
    decode_metadata_response,
)
from tarry.wire.reader import MalformedData, Reader

ZERO_ID: Final = bytes(16)
NO_LEADER: Final = -1

# A topic that brokers deny for so long is not about to appear: creation spreads in far less.
MISSING_MS: Final = 2_000


def read_metadata(reader: Reader, version: int) -> MetadataResponse:
    """Decode an answer; refuse one with a partition that no topic can have."""
    answer = decode_metadata_response(reader, version)
    for topic in answer.topics:
        for one in topic.partitions:
            if one.partition_index < 0:
                raise MalformedData(
                    f"topic {topic.name!r:.260} has partition {one.partition_index}, and those "
                    "count from 0"
                )
    return answer


class BrokerMetadata(NamedTuple):
    """Broker with the address at which clients reach it."""

    broker_id: int
    address: Address
    rack: str | None


class PartitionMetadata:
    """A partition's leader and replicas; `leader_id` is -1 while there is no leader."""

    def __init__(self, answer: MetadataResponsePartition) -> None:
        self.index: int = answer.partition_index
        self.error_code: int = answer.error_code
        self.leader_id: int = answer.leader_id
        self.leader_epoch: int = answer.leader_epoch
        self.replicas: list[int] = list(answer.replica_nodes)
        self.isr: list[int] = list(answer.isr_nodes)
        self.offline_replicas: list[int] = list(answer.offline_replicas)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionMetadata) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return self.index

    def __repr__(self) -> str:
        return f"PartitionMetadata({self.index}, leader {self.leader_id})"


class Topic:
    """Topic with its partitions by index, or, with an `error_code`, why they are not known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic_id: bytes = ZERO_ID
        self.error_code: int = NONE
        self.is_internal = False
        self.partitions: dict[int, PartitionMetadata] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"

    @property
    def needs_refresh(self) -> bool:
        """True if an error or a partition without leader stands where a later answer may bring
        more."""
        if self.error_code != NONE or not self.partitions:
            return True
        return any(one.leader_id == NO_LEADER for one in self.partitions.values())


class LeaderHint(NamedTuple):
    """A leader that a Produce or Fetch answer names; `leader_id` is -1 if it names none."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    broker: BrokerMetadata | None


def leader_hint(
    topic: str, partition: int, leader: Any, brokers: dict[int, BrokerMetadata]
) -> LeaderHint:
    """Return the hint in `current_leader` of an answer, which may be absent."""
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
        # Called with a topic's name when another topic has taken its place.
        self.when_recreated: Callable[[str], None] | None = None
        # Grows with every answer, so that who depends on it knows when to look again.
        self.version = 0
        # All topics are asked for, and `all_topics` names them: a pattern needs that.
        self.wants_all = False
        # A pattern finds no internal topic.
        self.excludes_internal = True
        # Beside those in use, these are kept of an answer that names all topics.
        self.is_wanted: Callable[[str], object] | None = None
        self.all_topics: list[str] = []
        self._tracked: dict[str, None] = {}
        self._missing_since_ms: dict[str, int] = {}

    # --- What is in use

    def track(self, name: str) -> bool:
        """Ask for this topic from now on; True if it was not asked for before."""
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

    # --- What is known

    def topic(self, name: str) -> Topic | None:
        """Return the topic with its partitions; None while it is not known to be there."""
        topic = self.topics.get(name)
        return topic if topic is not None and topic.partitions else None

    def leader_of(self, name: str, partition: int) -> PartitionMetadata | None:
        """Return the partition, if it has a leader whose address is known."""
        topic = self.topics.get(name)
        known = topic.partitions.get(partition) if topic is not None else None
        if known is None or known.leader_id not in self.brokers:
            return None
        return known

    def topic_id(self, name: str) -> bytes:
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else ZERO_ID

    def refusal(self, name: str) -> int:
        """Return the code with which brokers refuse a topic for good (for its name or the client's
        rights); else NONE."""
        topic = self.topics.get(name)
        known = ERRORS.get(topic.error_code) if topic is not None else None
        return NONE if known is None or known.retriable else known.code

    def is_denied(self, name: str) -> bool:
        """Return true if brokers said last that there is no such topic."""
        topic = self.topics.get(name)
        return topic is not None and topic.error_code == UNKNOWN_TOPIC_OR_PARTITION

    def is_missing(self, name: str, now_ms: int) -> bool:
        """Return true if brokers have refused the topic, or have said for a while that there is
        none."""
        topic = self.topics.get(name)
        if self.refusal(name) != NONE:
            return True
        if topic is None or topic.error_code != UNKNOWN_TOPIC_OR_PARTITION:
            return False
        return now_ms - self._missing_since_ms.get(name, now_ms) >= MISSING_MS

    def knows(self, name: str) -> bool:
        """Return true if a broker has said what it knows of the topic, a refusal included."""
        return name in self.topics or self.refusal(name) != NONE

    def error_of(self, name: str, now_ms: int, partition: int | None = None) -> ClientError:
        """Make the error to raise for a topic or partition that cannot be used."""
        code = self.refusal(name)
        if code != NONE:
            return BrokerError(code, refusal_text(name, code))
        return UnknownTopic(self.problem_with(name, now_ms, partition))

    def problem_with(self, name: str, now_ms: int, partition: int | None = None) -> str:
        """Describe the trouble with a topic, and for how long it lasts, for the text of an
        error."""
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

    def apply(self, response: MetadataResponse, now_ms: int) -> None:
        """Take an answer over; topics that are not in use only if they were asked for by name."""
        self.controller_id = response.controller_id
        self.cluster_id = response.cluster_id or ""
        self.brokers = brokers_of(response.brokers)
        self.version += 1
        if self.wants_all:
            named = [one for one in response.topics if one.name]
            self.all_topics = sorted(
                one.name or "" for one in named if not (one.is_internal and self.excludes_internal)
            )
        for answer in response.topics:
            if answer.name is not None and self._is_kept(answer.name):
                self._apply_topic(answer.name, answer, now_ms)
        if self.wants_all:
            there = dict.fromkeys(one.name for one in response.topics)
            for name in self._tracked:
                if name not in there:
                    gone = MetadataResponseTopic(UNKNOWN_TOPIC_OR_PARTITION, name)
                    self._apply_topic(name, gone, now_ms)

    def _is_kept(self, name: str) -> bool:
        if name in self._tracked:
            return True
        return self.wants_all and self.is_wanted is not None and bool(self.is_wanted(name))

    def _apply_topic(self, name: str, answer: MetadataResponseTopic, now_ms: int) -> None:
        old = self.topics.get(name)
        topic = topic_of(name, answer)
        if old is not None and old.topic_id != topic.topic_id != ZERO_ID != old.topic_id:
            if self.when_recreated is not None:
                self.when_recreated(name)
            self.names.pop(old.topic_id, None)
            old = None
        if topic.error_code != NONE and old is not None and old.partitions:
            # What we know stays of use while the error may pass; the error is remembered.
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
        """Take a hint over; False if it is older than what we know."""
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
    """Write why brokers refuse a topic for good, for the text of an error."""
    if code == INVALID_TOPIC_EXCEPTION:
        return name_flaw(name)
    return f"topic {name} cannot be used"


def name_flaw(name: str) -> str:
    """Write the sentence about a name that no topic may have."""
    return (
        f"{name!r:.60} is no name for a topic; take up to 249 letters (a to z, A to Z), digits, "
        "dots, underscores and hyphens"
    )


def brokers_of(endpoints: Iterable[Any]) -> dict[int, BrokerMetadata]:
    """Return the brokers by id, of any answer that names them; the messages have a class each."""
    return {
        one.node_id: BrokerMetadata(one.node_id, Address(one.host, one.port), one.rack)
        for one in endpoints
    }


def topic_of(name: str, answer: MetadataResponseTopic) -> Topic:
    """Make a topic from its description in an answer, with its partitions in order."""
    topic = Topic(name)
    topic.topic_id = answer.topic_id
    topic.error_code = answer.error_code
    topic.is_internal = answer.is_internal
    partitions = sorted((PartitionMetadata(one) for one in answer.partitions), key=_index_of)
    topic.partitions = {one.index: one for one in partitions}
    return topic


def _index_of(partition: PartitionMetadata) -> int:
    return partition.index


def _keep_newer_leaders(topic: Topic, old: Topic) -> None:
    """Keep the leaders known from a newer epoch: a broker that lags behind must not send the client
    back to a leader that has gone."""
    for index, partition in topic.partitions.items():
        known = old.partitions.get(index)
        if known is not None and partition.leader_epoch < known.leader_epoch:
            topic.partitions[index] = known
