"""Names of topics: Kafka's rule, and the clash of "." and "_".

Kafka's metrics write "." as "_", so `a.b` and `a_b` could not be told apart there; the second of
them is refused, as Kafka does.
"""

from __future__ import annotations

from typing import Final

from tarry.base.limits import TOPIC_NAME_CHARACTERS_MAX
from tarry.base.setting import shown

# Keeps the groups and what they have committed.
OFFSETS_TOPIC: Final = "__consumer_offsets"

# Keeps what the broker tells of itself: waits, rebalances, lag.
EVENTS_TOPIC: Final = "__tarry_events"

# Topics of Kafka's coordinators and our own; clients see them marked as internal.
INTERNAL_TOPICS: Final = (
    OFFSETS_TOPIC,
    EVENTS_TOPIC,
    "__share_group_state",
    "__transaction_state",
)

# The directory of the broker's own metadata has this name; no topic may.
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
