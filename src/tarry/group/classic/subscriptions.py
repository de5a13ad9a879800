"""The topics that a group of consumers is subscribed to, read from what its members said.

Metadata is opaque but for the protocol type `consumer`: a version, then the topics, and whatever
later versions add.  That beginning is the same in every version.  Members mostly want the same
topics: what was read of one member is compared with the bytes of the next one.
"""

from __future__ import annotations

from typing import Final

from tarry.group.classic.round import CONSUMER_PROTOCOL_TYPE, GroupRound
from tarry.wire.reader import MalformedData, Reader

# A topic takes at least its length.
_TOPIC_BYTES_MIN: Final = 2

# Names that are read of one group at once, which takes 15 ms.  What more members want is not known.
TOPICS_READ_MAX: Final = 100_000


def subscribed_topics(now: GroupRound) -> dict[str, None] | None:
    """Return the topics of all members, as keys; None if they cannot be known."""
    if now.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: dict[str, None] = {}
    if now.members and now.protocol_name is None:
        return None
    left = TOPICS_READ_MAX
    read = b""
    for member in now.members.values():
        metadata = member.metadata(now.protocol_name)
        if read and metadata.startswith(read):
            continue
        found = _read_topics(metadata, left)
        if found is None:
            return None
        theirs, size = found
        topics.update(dict.fromkeys(theirs))
        left -= len(theirs)
        read = metadata[:size]
    return topics


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """Return the topics that one consumer wants, or None if its metadata is not what consumers
    send.
    """
    found = _read_topics(metadata, TOPICS_READ_MAX)
    return None if found is None else found[0]


def _read_topics(metadata: bytes, count_max: int) -> tuple[list[str], int] | None:
    """Return the topics, `count_max` at most, and where they end; None if they cannot be read."""
    try:
        reader = Reader(metadata)
        if reader.i16() < 0:
            return None
        count = reader.array_length(_TOPIC_BYTES_MIN)
        if count > count_max:
            return None
        topics = [reader.string() for _ in range(max(count, 0))]
        return topics, int(reader.position)
    except MalformedData:
        return None
