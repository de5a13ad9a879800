"""Metadata records: what is decided about the cluster, as it lies in the metadata log.

One JSON object a record, with its kind and version.  A kind or version that is not known here was
written by a newer release; guessing at it could lose data, so it is refused.  Fields may be added
to a kind with a new version; older versions keep being read.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tarry.base.errors import CorruptData, TarryError

# Format of the whole data directory.
FORMAT: Final = 1

# The broker id of settings that count for every broker of the cluster.
EVERY_BROKER: Final = -1


class NewerFormat(TarryError):
    """The data was written by a newer release of Tarry."""


class PartitionRow(msgspec.Struct, array_like=True, frozen=True):
    """Row of a partition in `TopicCreated`, as an array: a topic may have thousands.

    Leadership is bound to a life of the leader, its `broker_epoch`; -1 where one broker has a store
    of its own.  `adding` and `removing` are the replicas that a reassignment brings and takes.
    `unclean_epoch` is the last leader epoch that began with an unclean election, -1 if none did.
    """

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    broker_epoch: int = -1
    adding: list[int] = []
    removing: list[int] = []
    unclean_epoch: int = -1


class MetadataRecord(msgspec.Struct, tag=True, tag_field="kind", frozen=True, kw_only=True):
    """Base of all kinds; `version` is that of the kind's fields."""

    version: int = 1


class ClusterCreated(MetadataRecord, frozen=True, kw_only=True):
    """The first record of a directory."""

    cluster_id: str
    format: int = FORMAT


class BrokerRegistered(MetadataRecord, frozen=True, kw_only=True):
    """A broker belongs to the cluster."""

    broker_id: int


class BrokerUnregistered(MetadataRecord, frozen=True, kw_only=True):
    """A broker belongs to the cluster no more.  Only where several brokers share a store."""

    broker_id: int


class BrokerStartedUncleanly(MetadataRecord, frozen=True, kw_only=True):
    """A broker came back without a clean stop: every leader epoch grows by one.

    Clients that read past what the crash left then notice it by the epoch.
    """

    broker_id: int


class TopicCreated(MetadataRecord, frozen=True, kw_only=True):
    """A topic with all its partitions; also how a snapshot describes one."""

    topic_id: bytes
    name: str
    partitions: list[PartitionRow]
    configs: dict[str, str]


class ConfigChanged(MetadataRecord, frozen=True, kw_only=True):
    """Record of all settings of a topic, in place of those before."""

    topic_id: bytes
    configs: dict[str, str]


class PartitionsAdded(MetadataRecord, frozen=True, kw_only=True):
    """A topic has grown: these come behind the partitions that it has."""

    topic_id: bytes
    partitions: list[PartitionRow]


class BrokerConfigChanged(MetadataRecord, frozen=True, kw_only=True):
    """Record of all settings of a broker that were changed while it ran, in place of those before.

    `broker_id` may be `EVERY_BROKER`: values that count where a broker has none of its own.
    """

    broker_id: int
    configs: dict[str, str]


class TopicDeleted(MetadataRecord, frozen=True, kw_only=True):
    """The topic is gone for clients; its data is about to be removed."""

    topic_id: bytes


class TopicRemoved(MetadataRecord, frozen=True, kw_only=True):
    """Record that nothing of a deleted topic is under its name any more."""

    topic_id: bytes


class DeletionPending(MetadataRecord, frozen=True, kw_only=True):
    """Brokers that still have data of a deleted topic.  Only where several brokers share a store.

    `broker_ids` take the place of those before.
    """

    topic_id: bytes
    broker_ids: list[int]


class BrokerDescribed(MetadataRecord, frozen=True, kw_only=True):
    """Endpoints of a registered broker, by listener, and the disk whose data counts as its own.

    Only where several brokers share a store.
    """

    broker_id: int
    directory_id: str
    rack: str
    endpoints: dict[str, tuple[str, int]]


class LifeChanged(MetadataRecord, frozen=True, kw_only=True):
    """A broker lives, in this phase.  Another epoch than before is another life.

    `phase` is "starting", "serving" or "leaving".  Only where several brokers share a store.
    """

    broker_id: int
    broker_epoch: int
    phase: str


class LifeEnded(MetadataRecord, frozen=True, kw_only=True):
    """A broker's life is over."""

    broker_id: int


class PartitionChanged(MetadataRecord, frozen=True, kw_only=True):
    """A partition has another leader, epoch or other replicas; `row` takes the place of the one
    before.  Only where several brokers share a store.
    """

    topic_id: bytes
    index: int
    row: PartitionRow


class TopicStoodStill(MetadataRecord, frozen=True, kw_only=True):
    """A topic's row cannot be read, or makes no sense, and nobody may change the topic; or it goes
    on again.  Only where several brokers share a store.
    """

    topic_id: bytes
    is_still: bool


class ProducerIdsReserved(MetadataRecord, frozen=True, kw_only=True):
    """Producer ids from `first_id` on, `count` of them, are given out in this life of a broker."""

    first_id: int
    count: int


class StateReset(MetadataRecord, frozen=True, kw_only=True):
    """Begins a snapshot: what stands before it counts no more."""


AnyRecord = (
    ClusterCreated
    | BrokerRegistered
    | BrokerUnregistered
    | BrokerStartedUncleanly
    | TopicCreated
    | ConfigChanged
    | PartitionsAdded
    | BrokerConfigChanged
    | TopicDeleted
    | TopicRemoved
    | ProducerIdsReserved
    | StateReset
    | DeletionPending
    | BrokerDescribed
    | LifeChanged
    | LifeEnded
    | PartitionChanged
    | TopicStoodStill
)

# The newest version of each kind that is read here.
VERSIONS: Final[dict[str, int]] = {
    "ClusterCreated": 1,
    "BrokerRegistered": 1,
    "BrokerUnregistered": 1,
    "BrokerStartedUncleanly": 1,
    "TopicCreated": 1,
    "ConfigChanged": 1,
    "PartitionsAdded": 1,
    "BrokerConfigChanged": 1,
    "TopicDeleted": 1,
    "TopicRemoved": 1,
    "ProducerIdsReserved": 1,
    "StateReset": 1,
    "DeletionPending": 1,
    "BrokerDescribed": 1,
    "LifeChanged": 1,
    "LifeEnded": 1,
    "PartitionChanged": 1,
    "TopicStoodStill": 1,
}


class _Label(msgspec.Struct):
    """Label that every record has, whatever else a newer release gave it."""

    kind: str
    version: int


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final[msgspec.json.Decoder[AnyRecord]] = msgspec.json.Decoder(AnyRecord)
_LABEL_DECODER: Final = msgspec.json.Decoder(_Label)


class _OwnRow(msgspec.Struct, array_like=True, frozen=True):
    """Row as a broker with a store of its own keeps it: nothing in it is about several brokers."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]


def encode_record(record: MetadataRecord) -> bytes:
    """Encode a record's bytes in the metadata log."""
    if isinstance(record, TopicCreated | PartitionsAdded):
        rows = [
            _OwnRow(row.leader_id, row.leader_epoch, row.partition_epoch, row.replicas, row.isr)
            for row in record.partitions
        ]
        # The encoder goes by what an object is, not by what its field says.
        record = replace(record, partitions=rows)
    return _ENCODER.encode(record)


def decode_record(data: bytes) -> MetadataRecord:
    """Decode the record in these bytes; `NewerFormat` or `CorruptData` if it cannot be had."""
    try:
        record = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _refuse_newer(data)
        raise CorruptData(f"a metadata record cannot be read: {error}") from error
    if record.version > VERSIONS[type(record).__name__]:
        _refuse_newer(data)
    if isinstance(record, ClusterCreated) and record.format > FORMAT:
        raise NewerFormat(
            f"the data has format {record.format}, this Tarry reads up to {FORMAT}: it was "
            "written by a newer release, start that one"
        )
    return record


def _refuse_newer(data: bytes) -> None:
    try:
        label = _LABEL_DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if label.version > VERSIONS.get(label.kind, 0):
        raise NewerFormat(
            f"the metadata holds a record {label.kind} of version {label.version}, this Tarry "
            f"reads {known_versions(label.kind)}: it was written by a newer release, start that one"
        )


def known_versions(kind: str) -> str:
    """Write what versions are read of a kind, as half a sentence."""
    version = VERSIONS.get(kind)
    return "no such kind" if version is None else f"up to version {version}"
