"""The topics that a group of consumers is subscribed to, read from what its members said.

Metadata is opaque but for the protocol type `consumer`: a version, then the topics, and whatever
later versions add.  That beginning is the same in every version.
"""

from __future__ import annotations

from tarry.group.round import CONSUMER_PROTOCOL_TYPE, GroupRound
from tarry.wire.reader import MalformedData, Reader

# A topic takes at least its length.
_TOPIC_BYTES_MIN = 2


def subscribed_topics(now: GroupRound) -> dict[str, None] | None:
    """Return the topics of all members, as keys; None if they cannot be known."""
    if now.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: dict[str, None] = {}
    if now.members and now.protocol_name is None:
        return None
    for member in now.members.values():
        theirs = topics_of_subscription(member.metadata(now.protocol_name))
        if theirs is None:
            return None
        topics.update(dict.fromkeys(theirs))
    return topics


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """Return the topics that one consumer wants, or None if its metadata is not what consumers
    send.
    """
    try:
        reader = Reader(metadata)
        if reader.i16() < 0:
            return None
        count = reader.array_length(_TOPIC_BYTES_MIN)
        return [reader.string() for _ in range(max(count, 0))]
    except MalformedData:
        return None


def is_subscribed(now: GroupRound, topic: str) -> bool:
    """Return true if the group works on this topic; consumers that cannot be understood may."""
    topics = subscribed_topics(now)
    if topics is None:
        return now.protocol_type == CONSUMER_PROTOCOL_TYPE
    return topic in topics
