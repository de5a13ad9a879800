"""Topics with compression.type, and copied settings: Apache Kafka and Tarry side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.interop.both_brokers import RUN, Ask, Both, KafkaConnection
from tests.support.patience import PATIENCE_S, tries

from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.records import BatchBuilder, decode_records
from tarry.records.batch import ATTRIBUTES, HEADER_SIZE, decode_batch_header
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, compress, decompress
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import Window, window_of

TYPES = ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer")
CODECS = range(len(NAMES))

# For Kafka's controller on a machine that does other work besides.
TIMEOUT_MS = PATIENCE_S * 1_000

# Of records that no limit of time refuses, whatever a broker's clock says.
TIME_MS = 1_700_000_000_000

# A broker answers so while it has not heard of a new topic or of its leader.
NOT_YET = (3, 5, 6)


@pytest.fixture(scope="module")
def both(apache_kafka: str) -> Iterator[Both]:
    connection = KafkaConnection(apache_kafka)
    hand = BrokerByHand({"auto.create.topics.enable": "false"})
    client = hand.connect()

    def ask_tarry(api_key: int, version: int, request: object) -> object:
        return client.ask(api_key, version, request)

    yield Both(connection.ask, ask_tarry)
    connection.close()


def creation(name: str, configs: dict[str, str]) -> CreateTopicsRequest:
    settings = [CreatableTopicConfig(key, value) for key, value in configs.items()]
    topic = CreatableTopic(f"{RUN}-{name}", 1, 1, [], settings)
    return CreateTopicsRequest([topic], TIMEOUT_MS)


def codes_of_creation(both: Both, name: str, **configs: str) -> list[int]:
    request = creation(name, {key.replace("_", "."): value for key, value in configs.items()})
    codes = []
    for answer in both.answers(api_keys.CREATE_TOPICS, 7, lambda _: request):
        assert isinstance(answer, CreateTopicsResponse)
        codes.append(answer.topics[0].error_code)
    return codes


def produce(ask: Ask, name: str, batch: bytes, version: int = 9) -> PartitionProduceResponse:
    data = TopicProduceData(f"{RUN}-{name}", partition_data=[])
    data.partition_data = [PartitionProduceData(index=0, records=window_of(batch))]
    request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[data])
    for _ in tries():
        answer = ask(api_keys.PRODUCE, version, request)
        assert isinstance(answer, ProduceResponse)
        (partition,) = answer.responses[0].partition_responses
        if partition.error_code not in NOT_YET:
            break
    return partition


def fetch(ask: Ask, name: str, version: int = 12) -> PartitionData:
    asked = FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1
    )
    topics = [FetchTopic(topic=f"{RUN}-{name}", partitions=[asked])]
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics
    )
    answer = ask(api_keys.FETCH, version, request)
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]


def stored(ask: Ask, name: str) -> list[object]:
    """What a reader learns of each batch: codec, times, producer, and its records."""
    window = fetch(ask, name).records
    assert isinstance(window, Window)
    data = window.to_bytes()
    found: list[object] = []
    position = 0
    while position < len(data):
        header = decode_batch_header(data, position)
        records = decode_records(data, size_max=1 << 24, position=position)
        found.append(
            (
                header.attributes,
                header.base_offset,
                header.last_offset_delta,
                header.record_count,
                header.base_timestamp,
                header.max_timestamp,
                (header.producer_id, header.producer_epoch, header.base_sequence),
                [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records],
            )
        )
        position += header.size
    return found


def some_batch(codec: int, producer_id: int = 77, sequence: int = 0) -> bytes:
    builder = BatchBuilder()
    builder.append(TIME_MS + 3, b"key", b"value", [("h", b"1"), ("h", None)])
    builder.append(TIME_MS, None, b"x" * 4_000)
    builder.append(TIME_MS + 9, b"", None)
    return builder.build(codec, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


@pytest.mark.parametrize("type_", TYPES)
def test_every_codec_is_stored_and_read_alike(both: Both, type_: str) -> None:
    name = f"stored-{type_}"
    # By default the records are too old to be kept, whenever a broker looks at their age.
    assert codes_of_creation(both, name, compression_type=type_, retention_ms="-1") == [0, 0]

    for number, codec in enumerate(CODECS):
        batch = some_batch(codec, sequence=3 * number)
        kafka, tarry = (produce(ask, name, batch) for ask in (both.kafka, both.tarry))
        again = [produce(ask, name, batch) for ask in (both.kafka, both.tarry)]

        assert (tarry.error_code, tarry.base_offset) == (kafka.error_code, kafka.base_offset)
        assert [one.base_offset for one in again] == [3 * number] * 2

    assert stored(both.tarry, name) == stored(both.kafka, name)


def refolded(batch: bytes, codec: int, content: bytes) -> bytes:
    """The batch with other content, sealed anew."""
    fields = batch[ATTRIBUTES:HEADER_SIZE]
    folded = compress(codec, content)
    size = (HEADER_SIZE - 12 + len(folded)).to_bytes(4, "big")
    crc = crc32c(fields + folded).to_bytes(4, "big")
    return batch[:8] + size + batch[12:17] + crc + fields + folded


def content_of(batch: bytes, codec: int) -> bytes:
    return decompress(codec, batch[HEADER_SIZE:], 1 << 20)


def keyless(codec: int) -> bytes:
    builder = BatchBuilder()
    builder.append(TIME_MS, b"k", b"1")
    builder.append(TIME_MS, None, b"2")
    return builder.build(codec)


GZIPPED = some_batch(GZIP)
# The topic's settings, the version of the produce, and the batch.
REFUSALS: dict[str, tuple[dict[str, str], int, bytes]] = {
    "grows too large": (
        {"compression.type": "uncompressed", "max.message.bytes": "1000"},
        9,
        GZIPPED,
    ),
    "too large before it shrinks": (
        {"compression.type": "gzip", "max.message.bytes": "1000"},
        9,
        some_batch(NONE),
    ),
    "just fits": (
        {"compression.type": "zstd", "max.message.bytes": str(len(some_batch(NONE)))},
        9,
        some_batch(NONE),
    ),
    "zstd by an old produce": ({"compression.type": "lz4"}, 6, some_batch(ZSTD)),
    "gzip by an old produce": ({"compression.type": "zstd"}, 3, GZIPPED),
    "no key in a compacted topic": (
        {"compression.type": "lz4", "cleanup.policy": "compact"},
        9,
        keyless(SNAPPY),
    ),
    "no key, uncompressed": (
        {"compression.type": "lz4", "cleanup.policy": "compact"},
        9,
        keyless(NONE),
    ),
    "a byte behind the records": (
        {"compression.type": "lz4"},
        9,
        refolded(GZIPPED, GZIP, content_of(GZIPPED, GZIP) + b"\0"),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_refused_is_refused_alike(both: Both, case: str) -> None:
    configs, version, batch = REFUSALS[case]
    name = case.replace(" ", "-").replace(",", "")
    for answer in both.answers(api_keys.CREATE_TOPICS, 7, lambda _: creation(name, configs)):
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0

    kafka, tarry = (produce(ask, name, batch, version) for ask in (both.kafka, both.tarry))

    assert (tarry.error_code, tarry.base_offset) == (kafka.error_code, kafka.base_offset)
    if kafka.record_errors:
        # Kafka names a record that is refused, not where the records of a batch end.
        named = [[each.batch_index for each in one.record_errors] for one in (kafka, tarry)]
        assert named[0] == named[1]


def test_records_that_are_cut_short_are_refused_by_both(both: Both) -> None:
    assert codes_of_creation(both, "cut", compression_type="lz4") == [0, 0]
    batch = refolded(GZIPPED, GZIP, content_of(GZIPPED, GZIP)[:-1])

    kafka, tarry = (produce(ask, "cut", batch) for ask in (both.kafka, both.tarry))

    assert kafka.error_code != 0
    assert tarry.error_code != 0


def test_the_time_of_the_append_is_told_by_both(both: Both) -> None:
    configs = {"compression_type": "zstd", "message_timestamp_type": "LogAppendTime"}
    assert codes_of_creation(both, "append-time", **configs) == [0, 0]

    for ask in (both.kafka, both.tarry):
        answer = produce(ask, "append-time", some_batch(LZ4))
        ((attributes, *_, latest, _, records),) = stored(ask, "append-time")  # type: ignore[misc]

        assert answer.log_append_time_ms > TIME_MS
        assert attributes == ZSTD | 0x08
        assert latest == answer.log_append_time_ms
        assert [one[1] for one in records] == [latest] * 3


# Key and value, one a topic.
SETTINGS = (
    ("compression.type", "none"),
    ("compression.type", "zstd"),
    ("compression.type", ""),
    ("compression.gzip.level", "0"),
    ("compression.gzip.level", "-1"),
    ("compression.gzip.level", "9"),
    ("compression.lz4.level", "17"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "-131072"),
    ("compression.zstd.level", "22"),
    ("compression.zstd.level", "23"),
    ("file.delete.delay.ms", "0"),
    ("file.delete.delay.ms", "-1"),
    ("flush.messages", "1"),
    ("flush.messages", "0"),
    ("flush.ms", "0"),
    ("flush.ms", "-1"),
    ("follower.replication.throttled.replicas", "*"),
    ("follower.replication.throttled.replicas", "0:1,1:2"),
    ("follower.replication.throttled.replicas", "0"),
    ("leader.replication.throttled.replicas", "0:1"),
    ("leader.replication.throttled.replicas", "all"),
    ("local.retention.bytes", "100"),
    ("local.retention.bytes", "-3"),
    ("local.retention.ms", "100"),
    ("preallocate", "true"),
    ("preallocate", "1"),
    ("remote.log.copy.disable", "true"),
    ("remote.log.delete.on.disable", "true"),
    ("remote.storage.enable", "true"),
    ("remote.storage.enable", "false"),
    ("unclean.leader.election.enable", "true"),
    ("unclean.leader.election.enable", "yes"),
)


@pytest.mark.parametrize("number", range(len(SETTINGS)), ids=lambda at: "=".join(SETTINGS[at]))
def test_a_topics_setting_is_taken_and_refused_alike(both: Both, number: int) -> None:
    key, value = SETTINGS[number]

    kafka, tarry = codes_of_creation(both, f"setting-{number}", **{key: value})

    assert tarry == kafka


@pytest.mark.parametrize("codec", [NONE, GZIP, ZSTD])
def test_a_record_is_too_large_for_the_same_topics_as_in_kafka(both: Both, codec: int) -> None:
    name = f"sizes-{codec}"
    limit = {"max_decompressed_message_bytes": "1007", "retention_ms": "-1"}
    assert codes_of_creation(both, name, **limit) == [0, 0]

    def codes(value_bytes: int) -> list[int]:
        builder = BatchBuilder()
        builder.append(TIME_MS, None, b"a")
        builder.append(TIME_MS, None, b"x" * value_bytes)
        batch = builder.build(codec)
        return [produce(ask, name, batch).error_code for ask in (both.kafka, both.tarry)]

    for value_bytes in (1_000, 1_001, 2_000):
        kafka, tarry = codes(value_bytes)
        assert kafka == tarry, value_bytes
