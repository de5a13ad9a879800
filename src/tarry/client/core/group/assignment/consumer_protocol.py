"""Consumer protocol: messages between consumers of a group, which the broker passes on unread.

A member joins with a `Subscription`, and the leader answers with an assignment for each member.
The bytes are Kafka's own consumer protocol: a version, then fields.  Later versions only append
fields, so that the known fields of a newer version can be read.  Any client may lead a group of
others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tarry.base.ids import TopicPartition
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

PROTOCOL_TYPE: Final = "consumer"

# KIP-792 and KIP-881: version 1 added the owned partitions, 2 their generation, 3 the rack.
SUBSCRIPTION_VERSION: Final = 3
VERSION_WITH_OWNED: Final = 1
VERSION_WITH_GENERATION: Final = 2
VERSION_WITH_RACK: Final = 3

# All versions of the assignment have the same fields.
ASSIGNMENT_VERSION: Final = 3

GENERATION_UNKNOWN: Final = -1

_STRING_BYTES_MIN: Final = 2
_TOPIC_BYTES_MIN: Final = 6
_PARTITION_BYTES: Final = 4


class Subscription(NamedTuple):
    """Subscription of a member: the topics that it wants, and the partitions `owned` that
    generation `generation_id` assigned to it."""

    topics: list[str]
    user_data: bytes | None = None
    owned: list[TopicPartition] = []
    generation_id: int = GENERATION_UNKNOWN
    rack_id: str | None = None


class SubscribedMember(NamedTuple):
    """Member of a group, as the leader sees it."""

    member_id: str
    instance_id: str | None
    subscription: Subscription


def encode_subscription(said: Subscription, version: int = SUBSCRIPTION_VERSION) -> bytes:
    """Encode a subscription; topics and owned partitions are sorted, as in Kafka's clients."""
    writer = Writer()
    writer.i16(version)
    writer.array_length(len(said.topics))
    for topic in sorted(said.topics):
        writer.string(topic)
    writer.nullable_bytes(said.user_data)
    if version >= VERSION_WITH_OWNED:
        write_places(writer, sorted(said.owned))
    if version >= VERSION_WITH_GENERATION:
        writer.i32(said.generation_id)
    if version >= VERSION_WITH_RACK:
        writer.nullable_string(said.rack_id)
    return writer.joined()


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription.  Raises MalformedData."""
    reader = Reader(data)
    version = reader.i16()
    count = reader.array_length(_STRING_BYTES_MIN)
    topics = [reader.string() for _ in range(max(count, 0))]
    user_data = reader.nullable_bytes()
    owned: list[TopicPartition] = []
    generation_id = GENERATION_UNKNOWN
    rack_id: str | None = None
    if version >= VERSION_WITH_OWNED:
        owned = read_places(reader)
    if version >= VERSION_WITH_GENERATION:
        generation_id = int(reader.i32())
    if version >= VERSION_WITH_RACK:
        rack_id = reader.nullable_string()
    return Subscription(topics, user_data, owned, generation_id, rack_id)


def encode_assignment(places: Iterable[TopicPartition], version: int = ASSIGNMENT_VERSION) -> bytes:
    """Encode partitions; a topic stands where it first occurs, with all its partitions in their
    order."""
    writer = Writer()
    writer.i16(version)
    write_places(writer, places)
    writer.nullable_bytes(None)
    return writer.joined()


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Decode an assignment.  Raises MalformedData.

    No bytes mean no partitions: a broker sends none to a member that the leader left out.
    """
    if not data:
        return []
    reader = Reader(data)
    reader.i16()
    return read_places(reader)


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, in the given order."""
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def write_places(writer: Writer, places: Iterable[TopicPartition]) -> None:
    """Write partitions by topic, in the given order."""
    topics = by_topic(places)
    writer.array_length(len(topics))
    for topic, partitions in topics.items():
        writer.string(topic)
        writer.array_length(len(partitions))
        for partition in partitions:
            writer.i32(partition)


def read_places(reader: Reader) -> list[TopicPartition]:
    """Read partitions by topic.  Raises MalformedData."""
    places: list[TopicPartition] = []
    for _ in range(max(reader.array_length(_TOPIC_BYTES_MIN), 0)):
        topic = reader.string()
        count = reader.array_length(_PARTITION_BYTES)
        places.extend((topic, int(reader.i32())) for _ in range(max(count, 0)))
    return places
