"""Rows of the shared metadata in etcd: their keys, their values, and what a value means.

A value is a JSON array that begins with the format of its kind.  A value of a newer format is
refused, since to guess at it could lose data; a damaged one names its key.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from tarry.base.errors import CorruptData
from tarry.base.ids import id_from_text, id_text
from tarry.cluster.records import NewerFormat
from tarry.cluster.topic_names import collision_key, name_fault

# Format of each kind of row that is written here; older ones keep being read.
ROW_FORMAT: Final = 1


class StoredRow(msgspec.Struct, array_like=True, frozen=True):
    """Base of all kinds; the first field is the format."""

    format: int


class ClusterRow(StoredRow, frozen=True):
    """`cluster`: made once, by the first broker."""

    cluster_id: str


class BrokerRow(StoredRow, frozen=True):
    """`brokers/<id>`: a registered broker, until it is unregistered.

    `directory_id` is that of the disk whose data counts; endpoints are by listener name.
    """

    directory_id: str
    rack: str
    endpoints: dict[str, tuple[str, int]]
    release: str


class LifeRow(StoredRow, frozen=True):
    """`lives/<id>`: a broker that is alive; the key goes with its lease.

    `phase` is "starting", "serving" or "leaving".  The key's creation is the broker epoch.
    """

    directory_id: str
    lease_id: int
    phase: str


class NameRow(StoredRow, frozen=True):
    """`names/<collision key>`: which topic has a name that clashes with no other."""

    name: str
    topic_id: str


class BlockRow(msgspec.Struct, array_like=True, frozen=True):
    """Partitions of a topic that were made together: replicas of each from `first_index` on.

    `epochs` are pairs of a broker's id and its epoch, of those that served then: they are in sync
    as long as a partition has no row of its own.
    """

    first_index: int
    replicas: list[list[int]]
    epochs: list[tuple[int, int]]


class TopicRow(StoredRow, frozen=True):
    """`topics/<topic id>`: a topic, its settings as text, and how its partitions were made."""

    name: str
    configs: dict[str, str]
    blocks: list[BlockRow]


class PartRow(StoredRow, frozen=True):
    """`parts/<topic id>/<index>`: a partition that is no longer as it was made."""

    leader_id: int
    leader_epoch: int
    broker_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    adding: list[int]
    removing: list[int]
    unclean_epoch: int


class UnreadableRow(StoredRow, frozen=True):
    """Row in place of a `parts/…` that cannot be read, or makes no sense; never written.

    `replicas` and epochs are those known last: whose data it is must not be forgotten.
    """

    leader_epoch: int
    partition_epoch: int
    replicas: list[int]


class DeletedRow(StoredRow, frozen=True):
    """`deleted/<topic id>`: a topic that is gone; `broker_ids` still have data of it."""

    name: str
    partition_count: int
    broker_ids: list[int]


class ConfigsRow(StoredRow, frozen=True):
    """`configs/<broker id>`: settings that were changed while brokers ran, as text."""

    configs: dict[str, str]


class ProducerIdsRow(StoredRow, frozen=True):
    """`ids/producer`: the first producer id that nobody was ever given."""

    next_id: int


AnyRow = (
    ClusterRow
    | BrokerRow
    | LifeRow
    | NameRow
    | TopicRow
    | PartRow
    | DeletedRow
    | ConfigsRow
    | ProducerIdsRow
)

# Kinds of rows by the first part of their keys.
KINDS: Final[dict[str, type[StoredRow]]] = {
    "cluster": ClusterRow,
    "brokers": BrokerRow,
    "lives": LifeRow,
    "names": NameRow,
    "topics": TopicRow,
    "parts": PartRow,
    "deleted": DeletedRow,
    "configs": ConfigsRow,
    "ids": ProducerIdsRow,
}

_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final = {kind: msgspec.json.Decoder(row) for kind, row in KINDS.items()}
_FORMAT_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])
_INT_DECODER: Final = msgspec.json.Decoder(int)
# The last: arrays in arrays in arrays, thousands deep.
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
# What clients are told has to fit into Kafka's fields.
_TEXT_BYTES_MAX: Final = 2**15 - 1
_PORT_MAX: Final = 2**16 - 1
# More than any topic has: a number is not believed before memory is taken for it.
PARTITIONS_MAX: Final = 1_000_000

R = TypeVar("R", bound=StoredRow)


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
        """Return the key under which a topic's name is taken, with all that clash with it."""
        return self._key(f"names/{collision_key(name)}")

    def topic(self, topic_id: bytes) -> bytes:
        """Return the key of a topic."""
        return self._key(f"topics/{id_text(topic_id)}")

    def part(self, topic_id: bytes, index: int) -> bytes:
        """Return the key of a partition."""
        return self._key(f"parts/{id_text(topic_id)}/{index}")

    def parts(self, topic_id: bytes) -> bytes:
        """Return what the keys of a topic's partitions begin with."""
        return self._key(f"parts/{id_text(topic_id)}/")

    def deleted(self, topic_id: bytes) -> bytes:
        """Return the key of a topic whose data is still to be removed."""
        return self._key(f"deleted/{id_text(topic_id)}")

    def configs(self, broker_id: int) -> bytes:
        """Return the key of a broker's changed settings, or of those that count for every one."""
        return self._key(f"configs/{broker_id}")

    def place(self, key: bytes) -> list[str]:
        """Return the parts of a key below the prefix, the kind first."""
        return key[len(self.prefix) :].decode(errors="backslashreplace").split("/")


def encode_row(row: StoredRow) -> bytes:
    """Encode a row's value."""
    return _ENCODER.encode(row)


def decode_row(kind: str, key: bytes, value: bytes) -> StoredRow:
    """Decode a row's value; `NewerFormat` or `CorruptData` with its key if it cannot be had."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise NewerFormat(
            f"etcd holds {shown_key(key)}, a kind of row that this Tarry does not know: a newer "
            "release is in the cluster, start that one here too"
        )
    found = format_of(value)
    if found > ROW_FORMAT:
        raise NewerFormat(
            f"etcd holds {shown_key(key)} in format {found}, this Tarry reads up to {ROW_FORMAT}: "
            "a newer release is in the cluster, start that one here too"
        )
    try:
        return decoder.decode(value)
    except _UNDECODABLE as error:
        raise CorruptData(f"{shown_key(key)} in etcd cannot be read: {error}") from error


def format_of(value: bytes) -> int:
    """Return the format that a value names; 0 if it names none."""
    try:
        parts = _FORMAT_DECODER.decode(value)
        return _INT_DECODER.decode(parts[0]) if parts else 0
    except _UNDECODABLE:
        return 0


def shown_key(key: bytes) -> str:
    """Write a key as text, whatever its bytes are."""
    return key.decode(errors="backslashreplace")


def part_fault(row: PartRow) -> str:
    """Return why nobody may lead, follow or change a partition with this row; "" if it is sound."""
    replicas = row.replicas
    if not 0 <= row.leader_epoch <= _INT32_MAX or not 0 <= row.partition_epoch <= _INT32_MAX:
        return "an epoch is out of its range"
    if not -1 <= row.broker_epoch <= _INT64_MAX or not -1 <= row.unclean_epoch <= row.leader_epoch:
        return "an epoch is out of its range"
    if not are_replicas(replicas):
        return "a replica is named twice, or has no broker's id"
    if not row.isr or len(dict.fromkeys(row.isr)) < len(row.isr):
        return "the replicas in sync are none, or one of them is named twice"
    if any(broker_id not in replicas for broker_id in [*row.isr, *row.adding, *row.removing]):
        return "a broker is in sync, added or removed that is no replica"
    if row.leader_id not in replicas:
        return f"the leader, {row.leader_id}, is no replica"
    return ""


def row_fault(row: StoredRow) -> str:
    """Return why a row makes no sense though it can be decoded; "" if it does.  A partition's has
    `part_fault`: it stands still alone.
    """
    match row:
        case BrokerRow():
            return _broker_fault(row)
        case LifeRow() if not 0 <= row.lease_id <= _INT64_MAX:
            return "its lease has no id"
        case TopicRow():
            return _blocks_fault(row.blocks)
        case DeletedRow() if not 0 <= row.partition_count <= PARTITIONS_MAX:
            return f"no topic has {row.partition_count} partitions"
        case DeletedRow():
            return name_fault(row.name)
        case ConfigsRow():
            return _text_fault([*row.configs, *row.configs.values()])
        case ProducerIdsRow() if not 0 <= row.next_id <= _INT64_MAX:
            return f"{row.next_id} is no producer id"
        case _:
            return ""


def _broker_fault(row: BrokerRow) -> str:
    texts = [row.rack]
    for listener, (host, port) in row.endpoints.items():
        if not 0 <= port <= _PORT_MAX:
            return f"{port} is no port"
        texts += [listener, host]
    return _text_fault(texts)


def _text_fault(texts: list[str]) -> str:
    if any(len(text.encode()) > _TEXT_BYTES_MAX for text in texts):
        return "a text in it is longer than clients can be told"
    return ""


def _blocks_fault(blocks: list[BlockRow]) -> str:
    end = 0
    for block in blocks:
        if block.first_index != end:
            return f"its partitions from {end} on are followed by those from {block.first_index} on"
        if any(not 0 <= epoch <= _INT64_MAX for _, epoch in block.epochs):
            return "an epoch is out of its range"
        end += len(block.replicas)
    return ""


def are_replicas(broker_ids: list[int]) -> bool:
    """Return whether these can be replicas: ids of brokers, each once."""
    if len(dict.fromkeys(broker_ids)) < len(broker_ids):
        return False
    return all(is_broker_id(broker_id) for broker_id in broker_ids)


def possible_replicas(broker_ids: list[int]) -> list[int]:
    """Return those of damaged replicas that can be some: what clients are told has to be one."""
    return [broker_id for broker_id in dict.fromkeys(broker_ids) if is_broker_id(broker_id)]


def is_broker_id(number: int) -> bool:
    """Return whether a broker can have this id."""
    return 0 <= number <= _INT32_MAX


def broker_id_of(key: bytes, text: str) -> int:
    """Return the broker's id that a key ends with; `CorruptData` if it is none."""
    try:
        return int(text)
    except ValueError as error:
        raise CorruptData(f"{shown_key(key)} in etcd names no broker") from error


def is_number(text: str) -> bool:
    """Return whether a part of a key is a number as brokers write it: one key has one number."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and str(int(text)) == text


def topic_id_of(text: str) -> bytes:
    """Return the topic id that a key names; `CorruptData` if it names none."""
    try:
        return id_from_text(text)
    except ValueError as error:
        raise CorruptData(f"'{text}' in a key of etcd is no topic id") from error
