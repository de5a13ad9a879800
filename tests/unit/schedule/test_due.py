"""When a batch is due, by its topic's settings."""

from __future__ import annotations

import pytest

from tarry.base.limits import DUE_MS_MAX
from tarry.base.setting import Value
from tarry.log.config import INT64_MAX, LogConfig
from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.schedule.due import NOT_DELAYED, due_ms

NOW = 1_000_000
INT64_MIN = -INT64_MAX - 1


def due(values: dict[str, Value], *timestamps: int) -> int:
    builder = BatchBuilder()
    for timestamp in timestamps:
        builder.append(timestamp, None, b"v")
    return due_ms(LogConfig(values), decode_batch_header(builder.build(), 0), NOW)


BY_TIMESTAMP: dict[str, Value] = {"delay.enable": True, "delay.source": "timestamp"}
BY_DEFAULT: dict[str, Value] = {"delay.enable": True, "delay.default.ms": 5_000}


def test_nothing_is_delayed_without_the_setting() -> None:
    assert due({}, NOW + 1_000) == NOT_DELAYED
    assert due({**BY_TIMESTAMP, "delay.enable": False}, NOW + 1_000) == NOT_DELAYED
    assert due({**BY_DEFAULT, "delay.enable": False}, NOW) == NOT_DELAYED


@pytest.mark.parametrize(
    ("timestamps", "expected"),
    [
        ([NOW + 1], NOW + 1),
        ([NOW], NOT_DELAYED),
        ([NOW - 1], NOT_DELAYED),
        ([-1], NOT_DELAYED),
        # So far back that its distance from now is no 64-bit number.
        ([INT64_MIN], NOT_DELAYED),
        # Parked whole: what is due already comes with the rest.
        ([NOW - 50, NOW + 9, NOW + 3], NOW + 9),
        ([DUE_MS_MAX], DUE_MS_MAX),
    ],
)
def test_a_batch_is_due_when_its_last_record_is(timestamps: list[int], expected: int) -> None:
    assert due(BY_TIMESTAMP, *timestamps) == expected


def test_every_record_waits_for_the_default() -> None:
    assert due(BY_DEFAULT, 17) == NOW + 5_000
    assert due({**BY_DEFAULT, "delay.default.ms": INT64_MAX}, 17) == DUE_MS_MAX
    assert due({**BY_DEFAULT, "delay.default.ms": 0}, 17) == NOT_DELAYED


def test_what_is_due_sooner_than_the_least_delay_is_not_delayed() -> None:
    values: dict[str, Value] = {**BY_TIMESTAMP, "delay.min.ms": 100}

    assert due(values, NOW + 99) == NOT_DELAYED
    assert due(values, NOW + 100) == NOW + 100
