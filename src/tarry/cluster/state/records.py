"""Metadata records: each is one change of the cluster's state.

A broker that is alone keeps them in its metadata log, one JSON object a record, with the kind and a
version.  In a cluster they are not kept: etcd keeps rows, and each broker derives the records from
the rows that change.

A release refuses a record of a version that it does not know, because reading it wrongly could lose
data.  A new field comes with a new version of its kind, and older versions stay readable.  A new
kind comes under a feature level (`levels`).  A release skips an unknown kind: the level in force
says whether the release may run at all.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from tarry.base.errors import CorruptData, TarryError
from tarry.base.partition_row import PartitionRow

# Format of the data directory; the first record of the metadata log names it.
FORMAT: Final = 1

# Broker id of the settings that apply to every broker of the cluster.
EVERY_BROKER: Final = -1


class NewerFormat(TarryError):
    """Refusal of data that a newer release of Tarry wrote."""


class MetadataRecord(msgspec.Struct, tag=True, tag_field="kind", frozen=True, kw_only=True):
    """Base of all records.  `version` counts the changes of the kind's fields."""

    version: int = 1


class ClusterCreated(MetadataRecord, frozen=True, kw_only=True):
    """Creation of the cluster: the first record of a metadata log."""

    cluster_id: str
    format: int = FORMAT


class BrokerRegistered(MetadataRecord, frozen=True, kw_only=True):
    """Registration of a broker, which belongs to the cluster until it is unregistered."""

    broker_id: int


class BrokerUnregistered(MetadataRecord, frozen=True, kw_only=True):
    """End of a broker's registration.  Only in a cluster with etcd."""

    broker_id: int


class BrokerStartedUncleanly(MetadataRecord, frozen=True, kw_only=True):
    """Start of a broker after a crash, which raises every leader epoch by one.

    A client that has read records which the crash lost learns it from the new epoch.
    """

    broker_id: int


class TopicCreated(MetadataRecord, frozen=True, kw_only=True):
    """Creation of a topic with all its partitions; a snapshot describes each topic by one."""

    topic_id: bytes
    name: str
    partitions: list[PartitionRow]
    configs: dict[str, str]


class ConfigChanged(MetadataRecord, frozen=True, kw_only=True):
    """Change of a topic's settings: `configs` replaces all of them."""

    topic_id: bytes
    configs: dict[str, str]


class PartitionsAdded(MetadataRecord, frozen=True, kw_only=True):
    """Growth of a topic: these partitions follow those that it has."""

    topic_id: bytes
    partitions: list[PartitionRow]


class BrokerConfigChanged(MetadataRecord, frozen=True, kw_only=True):
    """Change of a broker's settings while it runs: `configs` replaces all earlier such changes.

    `EVERY_BROKER` as `broker_id` sets values for every broker; a broker's own values come first.
    """

    broker_id: int
    configs: dict[str, str]


class TopicDeleted(MetadataRecord, frozen=True, kw_only=True):
    """Deletion of a topic: clients do not find it any more, and its data is removed next."""

    topic_id: bytes


class TopicRemoved(MetadataRecord, frozen=True, kw_only=True):
    """End of a deletion: no data of the topic is left, and its name is free."""

    topic_id: bytes


class DeletionPending(MetadataRecord, frozen=True, kw_only=True):
    """Progress of a deletion: these brokers still have data of the topic.  Only in a cluster with
    etcd.

    `broker_ids` replaces the list before.
    """

    topic_id: bytes
    broker_ids: list[int]


class BrokerDescribed(MetadataRecord, frozen=True, kw_only=True):
    """Description of a registered broker.  Only in a cluster with etcd.

    `directory_id` names the log directory whose data counts as this broker's.  `endpoints` are host
    and port by listener.  `levels` are the feature levels that its release knows.
    """

    broker_id: int
    directory_id: str
    rack: str
    endpoints: dict[str, tuple[str, int]]
    release: str = ""
    levels: dict[str, int] = {}


class LifeChanged(MetadataRecord, frozen=True, kw_only=True):
    """Phase of a broker's life: "starting", "serving" or "leaving".  Only in a cluster with etcd.

    `broker_epoch` names the life: another epoch than before means that a new life has begun.
    """

    broker_id: int
    broker_epoch: int
    phase: str


class LifeEnded(MetadataRecord, frozen=True, kw_only=True):
    """End of a broker's life.  Only in a cluster with etcd."""

    broker_id: int


class PartitionChanged(MetadataRecord, frozen=True, kw_only=True):
    """Change of a partition, such as another leader: `row` replaces the one before.

    Only in a cluster with etcd.
    """

    topic_id: bytes
    index: int
    row: PartitionRow


class FeatureLevelChanged(MetadataRecord, frozen=True, kw_only=True):
    """Change of the level of a feature that is in force; 0 means that no level is."""

    name: str
    level: int


class GroupConfigChanged(MetadataRecord, frozen=True, kw_only=True):
    """Change of a group's settings: `configs` replaces all of them."""

    group_id: str
    configs: dict[str, str]


class ProducerIdsReserved(MetadataRecord, frozen=True, kw_only=True):
    """Reservation of `count` producer ids from `first_id` on, which a broker hands to producers."""

    first_id: int
    count: int


class StateReset(MetadataRecord, frozen=True, kw_only=True):
    """Begin of a snapshot, which replaces the state of all records before it."""


class _OwnRow(msgspec.Struct, array_like=True, frozen=True):
    """Row of a partition in the metadata log, which has no fields for a cluster of brokers."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]


class _OwnTopic(msgspec.Struct, tag_field="kind", tag="TopicCreated", kw_only=True):
    """Form of `TopicCreated` in the metadata log."""

    version: int = 1
    topic_id: bytes
    name: str
    partitions: list[_OwnRow]
    configs: dict[str, str]


class _OwnPartitions(msgspec.Struct, tag_field="kind", tag="PartitionsAdded", kw_only=True):
    """Form of `PartitionsAdded` in the metadata log."""

    version: int = 1
    topic_id: bytes
    partitions: list[_OwnRow]


AnyRecord = (
    ClusterCreated
    | BrokerRegistered
    | BrokerUnregistered
    | BrokerStartedUncleanly
    | _OwnTopic
    | ConfigChanged
    | _OwnPartitions
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
    | FeatureLevelChanged
    | GroupConfigChanged
)

# Newest version of each kind that this release reads.
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
    "FeatureLevelChanged": 1,
    "GroupConfigChanged": 1,
}


class _Label(msgspec.Struct):
    """Kind and version of a record, which every release can read."""

    kind: str
    version: int


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final[msgspec.json.Decoder[AnyRecord]] = msgspec.json.Decoder(AnyRecord)
_LABEL_DECODER: Final = msgspec.json.Decoder(_Label)


def encode_record(record: MetadataRecord) -> bytes:
    """Return the bytes of a record in the metadata log."""
    if isinstance(record, TopicCreated | PartitionsAdded):
        rows = [
            _OwnRow(row.leader_id, row.leader_epoch, row.partition_epoch, row.replicas, row.isr)
            for row in record.partitions
        ]
        # The encoder looks at the class of each object, not at the type that the field declares.
        record = replace(record, partitions=rows)
    return _ENCODER.encode(record)


def decode_record(data: bytes) -> MetadataRecord | None:
    """Return the record in these bytes; None if this release does not know its kind.

    Raises `NewerFormat` for an unknown version of a known kind, `CorruptData` for damaged bytes.
    """
    try:
        record = _with_rows(_DECODER.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if _is_unknown_kind(data):
            return None
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


def _with_rows(record: AnyRecord) -> MetadataRecord:
    """Return a record of the log with its partitions' rows in the form that all stores share."""
    if not isinstance(record, _OwnTopic | _OwnPartitions):
        return record
    rows = [
        PartitionRow(
            row.leader_id, row.leader_epoch, -1, row.partition_epoch, row.replicas, row.isr
        )
        for row in record.partitions
    ]
    kind = TopicCreated if isinstance(record, _OwnTopic) else PartitionsAdded
    return kind(**(asdict(record) | {"partitions": rows}))


def _is_unknown_kind(data: bytes) -> bool:
    try:
        return _LABEL_DECODER.decode(data).kind not in VERSIONS
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _refuse_newer(data: bytes) -> None:
    try:
        label = _LABEL_DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    known = VERSIONS[label.kind]
    if label.version > known:
        raise NewerFormat(
            f"the metadata holds a record {label.kind} of version {label.version}, this Tarry "
            f"reads up to version {known}: it was written by a newer release, start that one"
        )
