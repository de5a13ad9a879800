"""Random ids of clusters and topics, in Kafka's form: 16 bytes, as text 22 base64url characters."""

from __future__ import annotations

import base64

from tarry.base.doors import Random

# A random UUID (RFC 9562, version 4): these bits say so, and keep it clear of the ids that Kafka
# reserves, which are zero but for their last bits.
_VERSION_MASK = 0xF << 76
_VERSION_4 = 4 << 76
_VARIANT_MASK = 0x3 << 62
_VARIANT = 0x2 << 62


def random_id(random: Random) -> bytes:
    """Draw a new id.  Its text does not begin with "-", so that it is no option on a command
    line.
    """
    while True:
        number = random.getrandbits(128)
        number = number & ~_VERSION_MASK | _VERSION_4
        number = number & ~_VARIANT_MASK | _VARIANT
        drawn = number.to_bytes(16, "big")
        if not id_text(drawn).startswith("-"):
            return drawn


def id_text(id_: bytes) -> str:
    """Write an id as users and Kafka's tools do."""
    return base64.urlsafe_b64encode(id_).rstrip(b"=").decode()
