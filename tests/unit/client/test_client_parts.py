"""Small parts of the client's core: partitioner, settings, receipts."""

from __future__ import annotations

from typing import Any

import pytest

from tarry.base.errors import InvalidSetting
from tarry.client.core.producer.batch import ProducerBatch, RecordReceipt, expired
from tarry.client.core.producer.partitioner import murmur2, partition_for_key
from tarry.client.errors import BrokerError
from tarry.client.settings import (
    ClientSettings,
    ConsumerSettings,
    ProducerSettings,
    parse_addresses,
    parse_duration_ms,
)
from tarry.link.events import Address
from tarry.records.record import decode_records

# --- Partitioner

# From Kafka's own UtilsTest.testMurmur2.
MURMUR2 = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("data", "wanted"), MURMUR2)
def test_murmur2_is_javas(data: bytes, wanted: int) -> None:
    assert murmur2(data) == wanted & 0xFFFF_FFFF


def test_a_negative_hash_gives_a_partition_as_in_java() -> None:
    assert partition_for_key(b"foobar", 10) == (-790332482 & 0x7FFF_FFFF) % 10


# --- Settings


def test_settings_take_kafkas_keys_in_both_forms() -> None:
    settings = ProducerSettings({"linger.ms": 7, "acks": "all"}, batch_size=100)

    assert (settings.linger_ms, settings.acks, settings.batch_bytes) == (7, -1, 100)


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        (ProducerSettings, {"linger.mss": 5}, "did you mean linger.ms?"),
        (ProducerSettings, {"session.timeout.ms": 5}, "is a setting of a consumer"),
        (ProducerSettings, {"fetch.min.bytes": 5}, "is a setting of a consumer"),
        (ProducerSettings, {"queue.buffering.max.ms": 5}, "use linger.ms"),
        (ProducerSettings, {"acks": "2"}, "must be all, -1, 0 or 1"),
        (ProducerSettings, {"linger.ms": "soon"}, "must be a whole number"),
        (ProducerSettings, {"linger.ms": -1}, "must be at least 0"),
        (ProducerSettings, {"enable.idempotence": "maybe"}, "must be true or false"),
        (ProducerSettings, {"enable.idempotence": True, "acks": "1"}, "needs acks=all"),
        (
            ProducerSettings,
            {"enable.idempotence": True, "max.in.flight.requests.per.connection": 6},
            "needs max.in.flight",
        ),
        (ProducerSettings, {"compression.gzip.level": 0}, "must be -1 or from 1 to 9"),
        (ProducerSettings, {"compression.lz4.level": 18}, "must be from 1 to 17"),
        (ProducerSettings, {"compression.zstd.level": 23}, "must be from -131072 to 22"),
        (ProducerSettings, {"partitioner.class": "x"}, "use partitioner"),
        (ProducerSettings, {"delivery.timeout.ms": 100}, "no request could be repeated"),
        (ClientSettings, {"bootstrap.servers": ""}, "names no address"),
        (ClientSettings, {"bootstrap.servers": "host:port"}, "no address of the form host:port"),
        (ClientSettings, {"bootstrap.servers": "::1:9092"}, "write the address"),
        (
            ConsumerSettings,
            {"auto.offset.reset": "middle"},
            "must be latest, earliest, none or by_duration:PT1H",
        ),
        (ConsumerSettings, {"security.protocol": "SSL"}, "must be PLAINTEXT"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(
    kind: Any, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidSetting) as caught:
        kind(given)

    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [("gzip", (1, 9)), ("lz4", (9, 3, 12)), ("zstd", (-131072, 1, 9, 22))],
)
def test_a_batch_is_compressed_with_the_level_that_was_set(
    codec: str, levels: tuple[int, ...]
) -> None:
    sizes = []
    for level in levels:
        given = {"compression.type": codec, f"compression.{codec}.level": level}
        settings = ProducerSettings(given)
        batch = ProducerBatch("t", 0, (0,), 1_000)
        for number in range(500):
            batch.append(0, b"%d" % (number * number), b"%x value" % (number**5 % 1_009), None)
        data = batch.encode(settings.codec, settings.codec_level)
        assert len(decode_records(data, size_max=100_000)) == 500
        sizes.append(len(data))

    assert sizes == sorted(set(sizes), reverse=True)


def test_a_codec_without_levels_has_none() -> None:
    assert ProducerSettings({"compression.type": "snappy"}).codec_level is None
    assert ProducerSettings().codec_level is None


def test_a_key_in_both_forms_is_an_error() -> None:
    with pytest.raises(InvalidSetting, match="given twice"):
        ProducerSettings({"linger.ms": 5}, linger_ms=5)


def test_idempotence_gives_way_to_acks_unless_it_was_asked_for() -> None:
    assert ProducerSettings().is_idempotent
    assert not ProducerSettings(acks="1").is_idempotent
    assert not ProducerSettings(enable_idempotence=False).is_idempotent


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"acks": "1"}, "acks=all"),
        (
            {"max.in.flight.requests.per.connection": 6},
            "max.in.flight.requests.per.connection <= 5",
        ),
    ],
)
def test_a_producer_that_is_not_idempotent_unasked_says_so_once(
    given: dict[str, Any], needed: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tarry.client")

    ProducerSettings(given)
    ProducerSettings({**given, "enable.idempotence": False})

    (line,) = caplog.messages
    assert line.startswith(f"a Producer is not idempotent, since that needs {needed}: ")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [(5, 5), ("1500", 1_500), ("1500ms", 1_500), ("30s", 30_000), ("2h", 7_200_000), ("x", None)],
)
def test_durations_have_units(text: Any, wanted: int | None) -> None:
    assert parse_duration_ms(text) == wanted


def test_addresses_may_be_many_and_of_both_families() -> None:
    found = parse_addresses("kafka-1:9093, [::1]:9094,localhost,[::1]")

    assert found == [
        Address("kafka-1", 9093),
        Address("::1", 9094),
        Address("localhost", 9092),
        Address("::1", 9092),
    ]
    assert str(found[1]) == "[::1]:9094"


# --- Receipts


def batch_of(count: int) -> ProducerBatch:
    batch = ProducerBatch("t", 0, (0,), 1_000)
    for number in range(count):
        batch.append(0, None, b"%d" % number, None)
    batch.payload_bytes = 100 * count
    return batch


def test_receipts_of_a_batch_share_its_end() -> None:
    batch = batch_of(3)
    receipts = [RecordReceipt(batch, place, 0) for place in range(3)]

    batch.succeed(40, -1)

    assert [receipt.offset for receipt in receipts] == [40, 41, 42]


def test_receipts_find_their_record_through_any_number_of_splits() -> None:
    batch = batch_of(8)
    receipts = [RecordReceipt(batch, place, 0) for place in range(8)]

    left, right = batch.split()
    first, second = right.split()
    rest = left.without({1: BrokerError(87, "bad"), 2: BrokerError(87, "worse")})
    assert rest is not None
    rest.succeed(0, -1)
    first.succeed(2, -1)
    second.succeed(4, -1)

    assert [receipt.offset for receipt in receipts] == [0, -1, -1, 1, 2, 3, 4, 5]
    assert [receipt.error is None for receipt in receipts] == [
        True, False, False, True, True, True, True, True,
    ]  # fmt: skip


def test_a_failed_record_counts_as_unseen_until_its_error_is_asked_for() -> None:
    batch = batch_of(2)
    receipts = [RecordReceipt(batch, place, 0) for place in range(2)]
    batch.fail(BrokerError(29, "no"))

    assert batch.unseen_failures == 2
    assert receipts[0].error is not None
    assert batch.unseen_failures == 1


@pytest.mark.parametrize(("count", "words"), [(1, "1 record was not"), (2, "2 records were not")])
def test_a_batch_whose_time_is_up_counts_its_records(count: int, words: str) -> None:
    assert str(expired(batch_of(count), 500, "no leader")).startswith(words)
