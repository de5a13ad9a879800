"""Rows of the shared metadata in etcd: their keys, their values, and what a value means.

A value is a JSON array that begins with the format of its kind.  A value of a newer format is
refused, since guessing could lose data, and a damaged value is refused with its key.  Rows of a
kind that a release does not know came with a feature (`levels`), and are skipped.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

import msgspec

from tarry.base.errors import CorruptData
from tarry.base.ids import id_from_text, id_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.state.records import NewerFormat
from tarry.cluster.state.topic_names import collision_key

# Format of each kind of row that this release writes; it still reads older formats.
ROW_FORMAT: Final = 1


class StoredRow(msgspec.Struct, array_like=True, frozen=True):
    """Base of all kinds; the first field is the format."""

    format: int


class ClusterRow(StoredRow, frozen=True):
    """Row `cluster`: the cluster's id; the first broker writes it once."""

    cluster_id: str


class BrokerRow(StoredRow, frozen=True):
    """Row `brokers/<id>`: a registered broker, until it is unregistered.

    `directory_id` is the id of the disk whose data counts as the broker's.  `endpoints` are host
    and port by listener name.  `levels` are the feature levels that its release knows; releases
    without feature levels write none.
    """

    directory_id: str
    rack: str
    endpoints: dict[str, tuple[str, int]]
    release: str
    levels: dict[str, int] = {}


class LifeRow(StoredRow, frozen=True):
    """Row `lives/<id>`: a broker that is alive; etcd removes the key when its lease ends.

    `phase` is "starting", "serving" or "leaving".  The revision that made the key is the broker
    epoch.
    """

    directory_id: str
    lease_id: int
    phase: str


class NameRow(StoredRow, frozen=True):
    """Row `names/<collision key>`: the topic that has the name, so that no clashing name is
    taken.
    """

    name: str
    topic_id: str


class BlockRow(msgspec.Struct, array_like=True, frozen=True):
    """Partitions of a topic that were made together: the replicas of each, from `first_index` on.

    `epochs` are pairs of broker id and broker epoch, of the brokers that served at that moment.
    They are the replicas in sync of a partition as long as it has no row of its own.
    """

    first_index: int
    replicas: list[list[int]]
    epochs: list[tuple[int, int]]


class TopicRow(StoredRow, frozen=True):
    """Row `topics/<topic id>`: a topic, its settings as text, and how its partitions were made."""

    name: str
    configs: dict[str, str]
    blocks: list[BlockRow]


class DeletedRow(StoredRow, frozen=True):
    """Row `deleted/<topic id>`: a deleted topic; the brokers `broker_ids` still have data of it."""

    name: str
    partition_count: int
    broker_ids: list[int]


class ConfigsRow(StoredRow, frozen=True):
    """Row `configs/<broker id>`: settings that were changed while brokers ran, as text."""

    configs: dict[str, str]


class ProducerIdsRow(StoredRow, frozen=True):
    """Row `ids/producer`: the first producer id that was never reserved."""

    next_id: int


class FeatureRow(StoredRow, frozen=True):
    """Row `features/<name>`: the level of a feature in force; there is no row if none is in
    force.
    """

    level: int


class GroupConfigsRow(StoredRow, frozen=True):
    """Row `groups/<id, percent-encoded>`: settings of a group, as text."""

    configs: dict[str, str]


# Row of any kind.
AnyRow = StoredRow | PartitionRow

# Kinds of rows by the first part of their keys.
KINDS: Final[dict[str, type[AnyRow]]] = {
    "cluster": ClusterRow,
    "brokers": BrokerRow,
    "lives": LifeRow,
    "names": NameRow,
    "topics": TopicRow,
    "parts": PartitionRow,
    "deleted": DeletedRow,
    "configs": ConfigsRow,
    "ids": ProducerIdsRow,
    "features": FeatureRow,
    "groups": GroupConfigsRow,
}

_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final = {kind: msgspec.json.Decoder(row) for kind, row in KINDS.items()}
_FORMAT_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])
_INT_DECODER: Final = msgspec.json.Decoder(int)
# A `RecursionError` comes from arrays nested thousands deep.
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Keys:
    """Keys of one cluster, all below its prefix, which begins and ends with "/"."""

    def __init__(self, prefix: str) -> None:
        assert prefix.startswith("/") and prefix.endswith("/")
        self.prefix = prefix.encode()
        self.cluster = self._key("cluster")
        self.producer_ids = self._key("ids/producer")

    def _key(self, rest: str) -> bytes:
        return self.prefix + rest.encode()

    def broker(self, broker_id: int) -> bytes:
        """Return the key of a registration."""
        return self._key(f"brokers/{broker_id}")

    def life(self, broker_id: int) -> bytes:
        """Return the key of a broker's life."""
        return self._key(f"lives/{broker_id}")

    def name(self, name: str) -> bytes:
        """Return the key that takes a topic's name, and with it all names that clash."""
        return self._key(f"names/{collision_key(name)}")

    def topic(self, topic_id: bytes) -> bytes:
        """Return the key of a topic."""
        return self._key(f"topics/{id_text(topic_id)}")

    def part(self, topic_id: bytes, index: int) -> bytes:
        """Return the key of a partition."""
        return self._key(f"parts/{id_text(topic_id)}/{index}")

    def parts(self, topic_id: bytes) -> bytes:
        """Return the common beginning of the keys of a topic's partitions."""
        return self._key(f"parts/{id_text(topic_id)}/")

    def deleted(self, topic_id: bytes) -> bytes:
        """Return the key of a topic whose data is still to be removed."""
        return self._key(f"deleted/{id_text(topic_id)}")

    def configs(self, broker_id: int) -> bytes:
        """Return the key of a broker's changed settings, or of the settings for all brokers."""
        return self._key(f"configs/{broker_id}")

    def feature(self, name: str) -> bytes:
        """Return the key of a feature's level."""
        return self._key(f"features/{name}")

    def group(self, group_id: str) -> bytes:
        """Return the key of a group's settings."""
        return self._key(f"groups/{quote(group_id, safe='')}")

    def of_kind(self, kind: str) -> bytes:
        """Return the common beginning of all keys of a kind."""
        return self._key(f"{kind}/")

    def place(self, key: bytes) -> list[str]:
        """Return the parts of a key below the prefix, the kind first."""
        return key[len(self.prefix) :].decode(errors="backslashreplace").split("/")


def partition_count(row: TopicRow) -> int:
    """Return how many partitions a topic has."""
    last = row.blocks[-1] if row.blocks else BlockRow(0, [], [])
    return last.first_index + len(last.replicas)


def encode_row(row: AnyRow) -> bytes:
    """Encode a row's value."""
    return _ENCODER.encode(row)


def decode_row(kind: str, key: bytes, value: bytes) -> AnyRow:
    """Decode a row's value; raise `NewerFormat` or `CorruptData`, naming the key, if it is
    unreadable.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise NewerFormat(
            f"etcd holds {shown_key(key)}, a kind of row that this Tarry does not know: a newer "
            "release is in the cluster, start that one here too"
        )
    found = _format_of(value)
    if found > ROW_FORMAT:
        raise NewerFormat(
            f"etcd holds {shown_key(key)} in format {found}, this Tarry reads up to {ROW_FORMAT}: "
            "a newer release is in the cluster, start that one here too"
        )
    try:
        return decoder.decode(value)
    except _UNDECODABLE as error:
        raise CorruptData(f"{shown_key(key)} in etcd cannot be read: {error}") from error


def _format_of(value: bytes) -> int:
    """Return the format that a value names; 0 if it names none."""
    try:
        parts = _FORMAT_DECODER.decode(value)
        return _INT_DECODER.decode(parts[0]) if parts else 0
    except _UNDECODABLE:
        return 0


def shown_key(key: bytes) -> str:
    """Return a key as text, whatever its bytes are."""
    return key.decode(errors="backslashreplace")


def broker_id_of(key: bytes, text: str) -> int:
    """Return the broker id at the end of a key; raise `CorruptData` if there is none."""
    try:
        return int(text)
    except ValueError as error:
        raise CorruptData(f"{shown_key(key)} in etcd names no broker") from error


def group_id_of(text: str) -> str:
    """Return the group id at the end of a key; raise `CorruptData` if no broker writes such a
    key.
    """
    group_id = unquote(text, errors="replace")
    if not group_id or quote(group_id, safe="") != text:
        raise CorruptData(f"'{text}' in a key of etcd is no group id")
    return group_id


def topic_id_of(text: str) -> bytes:
    """Return the topic id in a key; raise `CorruptData` if the text is none."""
    try:
        return id_from_text(text)
    except ValueError as error:
        raise CorruptData(f"'{text}' in a key of etcd is no topic id") from error
