"""Identity of released batches."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tarry.records.batch import CONTROL_BIT, checked_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records
from tarry.schedule.release_identity import (
    NO_S_OFFSET,
    S_OFFSET_MAX,
    instance_batch,
    is_instance,
    release_fault,
    released_batch,
    released_s_offset,
)


def batch_of(
    *, producer_id: int = -1, epoch: int = -1, sequence: int = -1, attributes: int = 0
) -> bytes:
    builder = BatchBuilder()
    builder.append(1_000, b"k", b"v", [("h", b"1")])
    builder.append(3_000, None, b"w")
    return builder.build(
        codec=attributes & 7,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=attributes & ~7,
    )


@given(st.integers(1, S_OFFSET_MAX))
def test_a_released_batch_says_whose_body_it_is(s_offset: int) -> None:
    released = released_batch(batch_of(producer_id=7, epoch=2, sequence=9), s_offset)

    assert released_s_offset(checked_header(released, 0)) == s_offset


@given(st.integers(1, (0x7FFF << 31) - 1))
def test_an_instance_says_so_and_whose_body_it_is(s_offset: int) -> None:
    released = instance_batch(batch_of(), s_offset)

    header = checked_header(released, 0)
    assert released_s_offset(header) == s_offset
    assert is_instance(header)
    assert not is_instance(checked_header(released_batch(batch_of(), s_offset), 0))
    assert header.base_timestamp == 1_000


def test_a_release_that_knows_no_instances_takes_none_for_the_end_of_a_body() -> None:
    header = checked_header(instance_batch(batch_of(), 5), 0)

    # It took no batch with a negative epoch for a release.
    assert header.producer_epoch < 0


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_release_leaves_the_records_as_they_are(codec: int) -> None:
    body = batch_of(producer_id=7, epoch=2, sequence=9, attributes=codec)

    released = released_batch(body, 2**40 + 5)

    assert released[61:] == body[61:]
    assert decode_records(released, size_max=1000) == decode_records(body, size_max=1000)
    header = checked_header(released, 0)
    assert (header.max_timestamp, header.codec) == (3_000, codec)


@pytest.mark.parametrize(
    ("producer_id", "epoch", "sequence"),
    [
        (-1, -1, -1),
        # Sarama and franz-go without idempotence.
        (-1, -1, 0),
        # KafkaJS without idempotence.
        (-1, 0, 0),
        (-1, 5, -1),
        (7, 0, 3),
        (-2, 0, 3),
    ],
)
def test_batches_of_clients_are_no_releases(producer_id: int, epoch: int, sequence: int) -> None:
    batch = batch_of(producer_id=producer_id, epoch=epoch, sequence=sequence)

    assert released_s_offset(checked_header(batch, 0)) == NO_S_OFFSET
    assert release_fault(checked_header(batch, 0)) == ""


@pytest.mark.parametrize(
    ("epoch", "sequence"), [(0, 1), (1, 0), (0x7FFF, 0x7FFF_FFFF), (-2, 0), (-0x8000, 5)]
)
def test_a_batch_that_looks_like_a_release_is_told(epoch: int, sequence: int) -> None:
    batch = batch_of(epoch=epoch, sequence=sequence)

    assert "producer id -1 with the epoch" in release_fault(checked_header(batch, 0))


def test_a_note_is_no_release() -> None:
    batch = batch_of(epoch=0, sequence=5, attributes=CONTROL_BIT)

    assert released_s_offset(checked_header(batch, 0)) == NO_S_OFFSET
