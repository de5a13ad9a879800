"""Record batches and producer states: µs of CPU for what each produce and each fetch does.

    .venv/bin/python bench/records.py                 the form that is built
    TARRY_PURE=1 .venv/bin/python bench/records.py    interpreted

Each figure is the best of seven rounds; the calling loop is included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import tarry
from tarry.partition.producers import ProducerStates
from tarry.records.batch import BatchHeader, check_batch
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records, find_record_from_time
from tarry.records.walk import walk_records
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import Window

ROUNDS: Final = 7
ROUND_S: Final = 0.05
SHAPES: Final = ((1, 100), (100, 100), (1000, 1000))


def measured(act: Callable[[], object]) -> float:
    """µs of CPU a call."""
    started = time.process_time()
    act()
    once = max(time.process_time() - started, 1e-6)
    calls = max(1, int(ROUND_S / once))
    best = once
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(calls):
            act()
        best = min(best, (time.process_time() - started) / calls)
    return best * 1e6


def built(count: int, size: int) -> BatchBuilder:
    builder = BatchBuilder()
    for index in range(count):
        builder.append(1_700_000_000_000 + index, None, b"v" * size)
    return builder


def measure_shape(count: int, size: int) -> None:
    builder = built(count, size)
    data = builder.build()
    end = len(data)
    figures = {
        "check": measured(lambda: check_batch(Window(data, 0, end))),
        "of it crc": measured(lambda: crc32c(memoryview(data)[21:])),
        "of it walk": measured(lambda: walk_records(data, 61, end, count)),
        "decode": measured(lambda: decode_records(data, size_max=end)),
        "find by time": measured(lambda: find_record_from_time(data, 0, 2**60, 0, end)),
        "build": measured(lambda: built(count, size).build()),
    }
    line = "  ".join(f"{name} {figure:.2f}" for name, figure in figures.items())
    print(f"{count}x{size} B: {line}")


def measure_producers() -> None:
    builder = built(1, 10)
    headers = [
        BatchHeader(builder.build(producer_id=7, producer_epoch=0, base_sequence=sequence), 0)
        for sequence in range(200)
    ]
    states = ProducerStates(86_400_000)

    def produce_all() -> None:
        states.reset()
        for offset, header in enumerate(headers):
            states.check(header)
            states.update(header, offset, 0)
            states.settle()

    print(f"idempotent check, update, settle: {measured(produce_all) / len(headers):.2f}")


def main() -> None:
    print(f"{tarry.FORM} ({tarry.FORM_REASON}); µs a batch")
    for count, size in SHAPES:
        measure_shape(count, size)
    measure_producers()


if __name__ == "__main__":
    main()
