"""Metadata records: encoding, versions, and data of a newer release."""

from __future__ import annotations

import msgspec
import pytest

from tarry.base.errors import CorruptData
from tarry.base.partition_row import PartitionRow
from tarry.cluster.state.records import (
    VERSIONS,
    BrokerConfigChanged,
    BrokerDescribed,
    BrokerRegistered,
    BrokerStartedUncleanly,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    DeletionPending,
    FeatureLevelChanged,
    GroupConfigChanged,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    NewerFormat,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    StateReset,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
    decode_record,
    encode_record,
)

ID = bytes(range(16))

EVERY_KIND: list[MetadataRecord] = [
    ClusterCreated(cluster_id="q9hQx0l6SYqJv2T7aWmQbA"),
    BrokerRegistered(broker_id=1),
    BrokerStartedUncleanly(broker_id=1),
    TopicCreated(
        topic_id=ID,
        name="orders",
        partitions=[PartitionRow(1, 3, -1, 4, [1, 2], [1])],
        configs={"retention.ms": "5"},
    ),
    ConfigChanged(topic_id=ID, configs={"retention.ms": "6"}),
    PartitionsAdded(topic_id=ID, partitions=[PartitionRow(1, 0, -1, 0, [1], [1])]),
    BrokerConfigChanged(broker_id=-1, configs={"message.max.bytes": "7"}),
    TopicDeleted(topic_id=ID),
    TopicRemoved(topic_id=ID),
    ProducerIdsReserved(first_id=1000, count=1000),
    StateReset(),
    DeletionPending(topic_id=ID, broker_ids=[1, 3]),
    BrokerDescribed(
        broker_id=1, directory_id="d", rack="a", endpoints={"PLAINTEXT": ("127.0.0.1", 9092)}
    ),
    LifeChanged(broker_id=1, broker_epoch=17, phase="serving"),
    LifeEnded(broker_id=1),
    PartitionChanged(topic_id=ID, index=2, row=PartitionRow(1, 3, 17, 4, [1, 2], [1])),
    BrokerUnregistered(broker_id=1),
    FeatureLevelChanged(name="tarry.wonders", level=2),
    GroupConfigChanged(group_id="billing", configs={"consumer.session.timeout.ms": "50000"}),
]


@pytest.mark.parametrize("record", EVERY_KIND, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was(record):
    assert decode_record(encode_record(record)) == record


def test_every_kind_has_a_version_and_is_tried_here():
    kinds = {type(record).__name__ for record in EVERY_KIND}

    assert sorted(kinds) == sorted(VERSIONS)
    assert sorted(kinds) == sorted(kind.__name__ for kind in MetadataRecord.__subclasses__())


def test_the_bytes_of_a_record_stay_what_they_are():
    record = EVERY_KIND[3]

    assert encode_record(record) == (
        b'{"kind":"TopicCreated","version":1,"topic_id":"AAECAwQFBgcICQoLDA0ODw==",'
        b'"name":"orders","partitions":[[1,3,4,[1,2],[1]]],"configs":{"retention.ms":"5"}}'
    )


@pytest.mark.parametrize(
    "data",
    [
        b'{"kind":"TopicDeleted","version":2,"topic_id":"AAECAwQFBgcICQoLDA0ODw=="}',
        b'{"kind":"TopicDeleted","version":2,"topic":"in another shape"}',
        b'{"kind":"ClusterCreated","version":1,"cluster_id":"x","format":2}',
    ],
)
def test_what_a_newer_release_wrote_is_refused_in_one_sentence(data):
    with pytest.raises(NewerFormat, match="newer release") as refusal:
        decode_record(data)

    assert "\n" not in str(refusal.value)


def test_a_kind_that_is_not_known_is_passed_over():
    assert decode_record(b'{"kind":"ShardMoved","version":1,"where":"elsewhere"}') is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"kind":"TopicDeleted","version":1}',
        b'{"kind":"TopicDeleted","version":1,"topic_id":7}',
        b'{"kind":"TopicDeleted","version":1,"topic_id":"%%"}',
    ],
)
def test_what_is_no_record_is_corrupt(data):
    with pytest.raises(CorruptData):
        decode_record(data)


def test_unknown_fields_of_a_known_version_are_skipped():
    data = msgspec.json.decode(encode_record(BrokerRegistered(broker_id=3)))
    data["remark"] = "added by hand"

    assert decode_record(msgspec.json.encode(data)) == BrokerRegistered(broker_id=3)
