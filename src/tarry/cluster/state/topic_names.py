"""Names of topics: Kafka's rule, and the clash of "." and "_".

Kafka's metrics write "." as "_", so the names `a.b` and `a_b` look alike there.  If a topic has one
of them, the other name is refused, as Kafka refuses it.
"""

from __future__ import annotations

from typing import Final

from tarry.base.limits import TOPIC_NAME_CHARACTERS_MAX
from tarry.base.setting import shown

# Topic that keeps the groups and their committed offsets.
OFFSETS_TOPIC: Final = "__consumer_offsets"

# Topic that keeps the broker's events: waits, rebalances, lag.
EVENTS_TOPIC: Final = "__tarry_events"

# Topics of Kafka's coordinators and our own; clients see them marked as internal.
INTERNAL_TOPICS: Final = (
    OFFSETS_TOPIC,
    EVENTS_TOPIC,
    "__share_group_state",
    "__transaction_state",
)

# Name of the directory of the broker's own metadata; no topic may have this name.
METADATA_TOPIC: Final = "__cluster_metadata"

_PUNCTUATION: Final = "._-"


def name_fault(name: str) -> str:
    """Return why this cannot be a topic's name; "" if it can."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"a topic's name must not be '{name}'"
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return f"a topic's name has at most {TOPIC_NAME_CHARACTERS_MAX} characters, not {len(name)}"
    for character in name:
        if not (character.isascii() and character.isalnum()) and character not in _PUNCTUATION:
            return (
                f"'{shown(name)}' cannot be a topic's name: it is made of ASCII letters, digits, "
                "'.', '_' and '-'"
            )
    return ""


def collision_key(name: str) -> str:
    """Return what names that clash have in common."""
    return name.replace(".", "_")


def is_internal(name: str) -> bool:
    """Return true if clients are told that this topic belongs to the cluster itself."""
    return name in INTERNAL_TOPICS
