"""Figures of `tarry perf`."""

from __future__ import annotations

import os
import sys

import pytest

from tarry.cli.perf_figures import CpuClock, Figures, NoSuchProcess, quantile


def test_a_quantile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]

    assert quantile(values, 0.5) == 51
    assert quantile(values, 0.99) == 100
    assert quantile([7.0], 0.999) == 7


def test_figures_are_lines_for_people_and_numbers_for_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = Figures("produce", "t", 2_000, 1_000_000, 0.5, 0.25, 0.1, [1.0, 3.0, 2.0])

    figures.print(as_json=False)
    line = figures.as_json()

    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "throughput  4,000 records/s, 2.00 MB/s"
    assert shown[3] == "client CPU  0.25 s, 125.00 µs a record, 250.00 ms/MB"
    assert line["records_per_second"] == 4_000
    assert line["latency_ms"] == {
        "min": 1, "p50": 2, "p95": 3, "p99": 3, "p99.9": 3, "max": 3, "samples": 3,
    }  # fmt: skip


def test_a_run_that_measured_nothing_has_figures_too() -> None:
    line = Figures("consume", "t", 0, 0, 0.0, 0.0, None).as_json()

    assert (line["records_per_second"], line["latency_ms"], line["broker_cpu"]) == (0, None, None)


@pytest.mark.skipif(sys.platform != "linux", reason="the CPU of others is read from /proc")
def test_the_cpu_of_another_process_is_measured_and_a_missing_one_is_named() -> None:
    clock = CpuClock(os.getpid())
    while not clock.broker:
        sum(range(100_000))

    assert clock.client > 0
    with pytest.raises(NoSuchProcess, match="process 999999999 cannot be read"):
        CpuClock(999_999_999)
