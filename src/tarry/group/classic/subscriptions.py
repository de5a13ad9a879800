"""Topics that a group of consumers is subscribed to, read from the members' metadata.

Metadata is opaque unless the protocol type is `consumer`.  Then it is a version, the topics, and
fields of later versions.  The topics are encoded alike in every version.  Members mostly have the
same topics, so the bytes of one member's topics are compared with the next member's before that one
is read.
"""

from __future__ import annotations

from typing import Final

from tarry.group.classic.round import CONSUMER_PROTOCOL_TYPE, GroupRound
from tarry.wire.reader import MalformedData, Reader

# Smallest size of a topic: its length field.
_TOPIC_BYTES_MIN: Final = 2

# Names read for one group at once, which takes 15 ms.  With more the topics count as unknown.
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
    """Return the topics of one consumer; None if its metadata has not the form of a consumer's."""
    found = _read_topics(metadata, TOPICS_READ_MAX)
    return None if found is None else found[0]


def _read_topics(metadata: bytes, count_max: int) -> tuple[list[str], int] | None:
    """Return the topics and their end in `metadata`; None if unreadable or over `count_max`."""
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
