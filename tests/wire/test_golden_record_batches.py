"""Batches and a snapshot as Apache Kafka 4.1.0 writes them.

Origin: `MemoryRecords.withIdempotentRecords` and `ProducerStateManager.writeSnapshot` of
kafka-clients and kafka-storage 4.1.0, called with the values that stand in the tests.
"""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.partition.producers import ProducerStates
from tarry.records.batch import BatchHeader, check_batch
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records
from tarry.records.record_limits import check_record_limits
from tarry.wire.reader import window_of

HEADER = "0000018bcfe568000000018bcfe569f4000000000000004d00037ffffffe00000004"  # times to count
RECORDS = (
    "20000000026b0476310402680278026e011200e8070201047632001200cf0f04046b3301000e00c80106000000"
)
BATCHES = {
    0: "00000000000000000000005effffffff02f47031b2000000000003" + HEADER + RECORDS,
    1: "000000000000000000000071ffffffff020a339a08000100000003"
    + HEADER
    + "1f8b08000000000000ff5360606060ca6629336461ca60aa60ca63146278c1cec4c85266c420c4709e9f8525"
    "db9891818fe104231b5021005f168f282d000000",
    2: "000000000000000000000074ffffffff02b689bab5000200000003"
    + HEADER
    + "82534e415050590000000001000000010000002f2db0"
    + RECORDS,
    3: "00000000000000000000006dffffffff02e8992c1a000300000003"
    + HEADER
    + "04224d186040822d000080"
    + RECORDS
    + "00000000",
    4: "00000000000000000000006affffffff0237ab607f000400000003"
    + HEADER
    + "28b52ffd0058680100"
    + RECORDS
    + "010000",
}
# Producer 77 in epoch 3 with sequences 2147483646 to 1 at offsets 100 to 103; producer 9 in epoch
# 0 with 40 and 41 at 98 and 99; producer 5 with a marker only.
SNAPSHOT = (
    "0001180c990b00000003"
    "000000000000004d00030000000100000000000000670000000300"
    "00018bcfe569f4ffffffffffffffffffffffff"
    "000000000000000900000000002900000000000000630000000100"
    "000174876e8000ffffffffffffffffffffffff"
    "00000000000000050002ffffffffffffffffffffffff0000000000"
    "000174876e800000000004ffffffffffffffff"
)


def the_same_records() -> BatchBuilder:
    builder = BatchBuilder()
    builder.append(1_700_000_000_000, b"k", b"v1", [("h", b"x"), ("n", None)])
    builder.append(1_700_000_000_500, None, b"v2")
    builder.append(1_699_999_999_000, b"k3", None)
    builder.append(1_700_000_000_100, b"", b"")
    return builder


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_of_kafka_s_client_is_accepted_and_read(codec):
    data = bytes.fromhex(BATCHES[codec])

    check = check_batch(window_of(data))
    check_record_limits(check, 1_699_999_999_000, 1_700_000_000_500)

    assert check.error_code == errors.NONE
    assert check.window.to_bytes() == data
    assert (check.header.producer_id, check.header.producer_epoch) == (77, 3)
    assert (check.header.base_sequence, check.header.last_sequence) == (2**31 - 2, 1)
    ours = decode_records(the_same_records().build(), size_max=1000)
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in ours] == [
        (r.offset, r.timestamp, r.key, r.value, r.headers)
        for r in decode_records(data, size_max=1000)
    ]


@pytest.mark.parametrize("codec", [0, 2])
def test_the_same_records_become_the_same_bytes(codec):
    data = the_same_records().build(
        codec, producer_id=77, producer_epoch=3, base_sequence=2**31 - 2
    )

    assert data.hex() == BATCHES[codec]


def test_a_snapshot_of_kafka_s_is_read_and_written_alike():
    states = ProducerStates(1000)

    assert states.load_snapshot(bytes.fromhex(SNAPSHOT))

    header = BatchHeader(bytes.fromhex(BATCHES[0]), 0)
    known = states.check(header)
    assert known.is_duplicate
    assert (known.base_offset, known.last_offset) == (100, 103)
    assert len(states) == 2
    assert states.encode_snapshot()[10:].hex() == SNAPSHOT[20 : 20 + 2 * 2 * 46]
