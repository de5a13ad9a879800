"""BatchBuilder: sizes, choices made at the end, and foreign readers of what it builds."""

from __future__ import annotations

import pytest
from aiokafka.record.memory_records import MemoryRecords as AioRecords

from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records


def filled() -> BatchBuilder:
    builder = BatchBuilder()
    for index in range(200):
        key = None if index % 3 == 0 else b"k%d" % index
        value = None if index % 5 == 0 else b"v" * index
        headers = [("h", b"x"), ("n", None)] if index % 7 == 0 else []
        builder.append(1_700_000_000_000 + index * 97 % 1000, key, value, headers)
    return builder


def test_size_is_that_of_the_uncompressed_batch():
    builder = filled()

    assert builder.size == len(builder.build())
    assert builder.count == 200


def test_a_batch_may_be_built_again_with_other_choices():
    builder = filled()

    first = builder.build(0, producer_id=1, producer_epoch=0, base_sequence=5)
    second = builder.build(4, 77, producer_id=1, producer_epoch=1, base_sequence=0)

    assert decode_batch_header(first, 0).base_sequence == 5
    assert decode_batch_header(second, 0).producer_epoch == 1
    assert [one.value for one in decode_records(first, size_max=10**6)] == [
        one.value for one in decode_records(second, size_max=10**6)
    ]


def test_the_first_record_is_the_base_of_the_times():
    builder = BatchBuilder()
    builder.append(500, None, None)
    builder.append(400, None, None)

    header = decode_batch_header(builder.build(), 0)

    assert (header.base_timestamp, header.max_timestamp) == (500, 500)


# kafka-python loads its schemas by a function that Python 3.11 to 3.12 deprecates.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("codec", [0, 1])
def test_kafka_python_reads_what_is_built(codec):
    from kafka.record import MemoryRecords as PythonRecords

    data = filled().build(codec, 40)

    batch = PythonRecords(data).next_batch()

    assert batch.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == [
        (r.offset, r.timestamp, r.key, r.value, r.headers)
        for r in decode_records(data, size_max=10**6)
    ]


@pytest.mark.parametrize("codec", range(5))
def test_aiokafka_reads_what_is_built(codec):
    data = filled().build(codec, 40)

    batch = AioRecords(data).next_batch()

    assert batch.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == [
        (r.offset, r.timestamp, r.key, r.value, r.headers)
        for r in decode_records(data, size_max=10**6)
    ]
