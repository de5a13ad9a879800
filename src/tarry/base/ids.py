"""Ids: a partition's name, and random ids in Kafka's forms."""

from __future__ import annotations

from tarry.base.doors import Random

# Topic and index of a partition.
TopicPartition = tuple[str, int]

# Bits that mark a random UUID (RFC 9562, version 4).  They also keep it apart from the ids that
# Kafka reserves, which are zero except for their last bits.
_VERSION_MASK = 0xF << 76
_VERSION_4 = 4 << 76
_VARIANT_MASK = 0x3 << 62
_VARIANT = 0x2 << 62


def random_uuid(random: Random) -> bytes:
    """Draw a UUID of 16 bytes."""
    number = random.getrandbits(128)
    number = number & ~_VERSION_MASK | _VERSION_4
    number = number & ~_VARIANT_MASK | _VARIANT
    return number.to_bytes(16, "big")


def random_id(random: Random) -> bytes:
    """Draw an id of a cluster or topic, whose text does not begin with "-": a command line would
    take it for an option.
    """
    while True:
        drawn = random_uuid(random)
        if not id_text(drawn).startswith("-"):
            return drawn


def id_text(id_: bytes) -> str:
    """Write an id as users and Kafka's tools do: 22 base64url characters."""
    # `binascii` is a C module, cheap to import: a client that only produces writes no id.
    import binascii

    text = binascii.b2a_base64(id_, newline=False).rstrip(b"=").decode()
    return text.replace("+", "-").replace("/", "_")


def id_from_text(text: str) -> bytes:
    """Return the id that `id_text` wrote as this text; `ValueError` if it is no id."""
    import binascii

    standard = text.replace("-", "+").replace("_", "/")
    id_ = binascii.a2b_base64(standard + "==", strict_mode=False)
    if len(id_) != 16 or id_text(id_) != text:
        raise ValueError(f"'{text}' is no id of 22 base64url characters")
    return id_


def uuid_text(uuid: bytes) -> str:
    """Write a UUID with hyphens, as at the end of member ids."""
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
