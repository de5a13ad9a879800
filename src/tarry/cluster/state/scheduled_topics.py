"""Virtual topics: `__scheduled.<topic>` shows the records of a topic that wait until they are due.

A virtual topic has no row of its own.  It has the partitions and leaders of its topic, and exists
as long as records of the topic may wait.  Its id is its topic's id with another version of UUID,
which no topic's own id has; so each of the two ids can be computed from the other.
"""

from __future__ import annotations

from typing import Final

from tarry.cluster.state.levels import may_delay
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.protocol.message import ZERO_UUID

SCHEDULED_PREFIX: Final = "__scheduled."

# In the byte at this place the first four bits are the UUID's version: 4 in ids of topics
# (`base/ids`).
_VERSION_BYTE: Final = 6
_OTHER_VERSION_BIT: Final = 0x80


def topic_shown_by(name: str) -> str:
    """Return the topic that the virtual topic of this name shows; "" if the name is not a
    virtual one.
    """
    return name[len(SCHEDULED_PREFIX) :] if name.startswith(SCHEDULED_PREFIX) else ""


def scheduled_name(name: str) -> str:
    """Return the name of the virtual topic that shows what waits in a topic."""
    return SCHEDULED_PREFIX + name


def other_id(topic_id: bytes) -> bytes:
    """Return the id of the virtual topic of this topic, or of the topic of this virtual one."""
    version = topic_id[_VERSION_BYTE] ^ _OTHER_VERSION_BIT
    return topic_id[:_VERSION_BYTE] + bytes((version,)) + topic_id[_VERSION_BYTE + 1 :]


class ScheduledTopicState(TopicState, frozen=True):
    """Virtual topic as readers and groups know it; `shown` is the topic whose records it shows."""

    shown: str

    @property
    def hosted_name(self) -> str:
        return self.shown

    @property
    def is_internal(self) -> bool:
        return True


def scheduled_topic(topic: TopicState) -> TopicState | None:
    """Return the virtual topic of a topic; None if no record of the topic may wait."""
    if not may_delay(topic.configs):
        return None
    name, topic_id = scheduled_name(topic.name), other_id(topic.topic_id)
    return ScheduledTopicState(name, topic_id, topic.partitions, topic.configs, topic.name)


def readable_topic(
    state: ClusterState, name: str, topic_id: bytes = ZERO_UUID
) -> TopicState | None:
    """Return the topic that a reader names, by its id if it gives one; virtual ones too."""
    by_id = topic_id != ZERO_UUID
    found = state.topic_by_id(topic_id) if by_id else state.topic(name)
    if found is not None:
        return found
    shown = state.topic_by_id(other_id(topic_id)) if by_id else state.topic(topic_shown_by(name))
    return None if shown is None else scheduled_topic(shown)


def only_shows(name: str) -> str:
    """Return the sentence that refuses to write or change the virtual topic of this name."""
    shown = topic_shown_by(name)
    return (
        f"'{name}' only shows the records of topic '{shown}' that wait until they are due; write "
        f"to '{shown}', and change that one"
    )


def why_not_changed(state: ClusterState, name: str | None, topic_id: bytes | None = None) -> str:
    """Return why a topic, given by name or id, cannot be changed: it is virtual; "" if it is
    not.
    """
    found = readable_topic(state, name or "", topic_id or ZERO_UUID)
    return only_shows(found.name) if isinstance(found, ScheduledTopicState) else ""
