"""Subscriptions and assignments of simulated members, as bytes.

A subscription has Kafka's format; the broker reads its topics.  An assignment has a format of our
own: a token by which the leader's decision is known again, and the partitions.
"""

from __future__ import annotations

from typing import Final

from tarry.base.ids import TopicPartition
from tarry.wire.writer import Writer

_SEPARATOR: Final = "|"


def subscription(topics: list[str], number: int) -> bytes:
    """Encode a subscription to these topics; another number makes another subscription."""
    writer = Writer()
    writer.i16(0)
    writer.i32(len(topics))
    for topic in topics:
        writer.string(topic)
    writer.bytes_(str(number).encode())
    return writer.finish()


def encode_assignment(token: str, partitions: list[TopicPartition]) -> bytes:
    """Encode the partitions that one member is given."""
    parts = [token, *(f"{topic}:{index}" for topic, index in partitions)]
    return _SEPARATOR.join(parts).encode()


def decode_assignment(data: bytes) -> tuple[str, list[TopicPartition]]:
    """Decode an assignment: token and partitions, empty if the leader forgot this member."""
    if not data:
        return "", []
    token, *parts = data.decode().split(_SEPARATOR)
    partitions: list[TopicPartition] = []
    for part in parts:
        topic, _, index = part.rpartition(":")
        partitions.append((topic, int(index)))
    return token, partitions


def share_out(
    partitions: list[TopicPartition], member_ids: list[str]
) -> dict[str, list[TopicPartition]]:
    """Assign the partitions to the members in turns."""
    shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in member_ids}
    for place, partition in enumerate(partitions):
        shares[member_ids[place % len(member_ids)]].append(partition)
    return shares
