"""Batches with one flaw and a right CRC, so that the flaw is what is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tarry.records.batch import ATTRIBUTES, CRC, HEADER_SIZE, LENGTH, LENGTH_OVERHEAD
from tarry.records.builder import BatchBuilder
from tarry.wire.crc32c import crc32c

Reseal = Callable[..., bytes]


@pytest.fixture
def reseal() -> Reseal:
    """Replace header fields (`fields={position: bytes}`) and the records; remake the CRC."""

    def made(
        data: bytes, fields: dict[int, bytes] | None = None, records: bytes | None = None
    ) -> bytes:
        batch = bytearray(data)
        if records is not None:
            batch[HEADER_SIZE:] = records
            batch[LENGTH : LENGTH + 4] = (len(batch) - LENGTH_OVERHEAD).to_bytes(4, "big")
        for position, value in (fields or {}).items():
            batch[position : position + len(value)] = value
        batch[CRC : CRC + 4] = crc32c(bytes(batch[ATTRIBUTES:])).to_bytes(4, "big")
        return bytes(batch)

    return made


@pytest.fixture
def three_records() -> bytes:
    """An uncompressed batch: times 1000, 3000 and 2000, the second record without a key."""
    builder = BatchBuilder()
    builder.append(1000, b"a", b"one", [("h", b"x"), ("n", None)])
    builder.append(3000, None, b"two")
    builder.append(2000, b"c", None)
    return builder.build()


@pytest.fixture
def idempotent() -> bytes:
    """Two records of producer 7, epoch 1, from sequence 10 on."""
    builder = BatchBuilder()
    builder.append(1000, None, b"one")
    builder.append(1000, None, b"two")
    return builder.build(producer_id=7, producer_epoch=1, base_sequence=10)
