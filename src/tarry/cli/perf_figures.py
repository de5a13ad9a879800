"""Figures of `tarry perf`: throughput, latencies and CPU, for people and as JSON."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from tarry.base.errors import TarryError
from tarry.cli.tables import print_json
from tarry.cli.units import size_text

QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


class NoSuchProcess(TarryError):
    """The process whose CPU is to be measured is not there, or cannot be looked at."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that `share` of the sorted values do not exceed."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


class CpuClock:
    """CPU seconds of this process, and of another one if its id is given."""

    def __init__(self, broker_pid: int | None) -> None:
        self._broker_pid = broker_pid
        self._client_begin = time.process_time()
        self._broker_begin = self._broker_seconds()

    @property
    def client(self) -> float:
        """Seconds since this clock was made, of all threads."""
        return time.process_time() - self._client_begin

    @property
    def broker(self) -> float | None:
        """Seconds of the other process; None if none was named."""
        now = self._broker_seconds()
        return None if now is None or self._broker_begin is None else now - self._broker_begin

    def _broker_seconds(self) -> float | None:
        if self._broker_pid is None:
            return None
        try:
            text = Path(f"/proc/{self._broker_pid}/stat").read_text(encoding="utf-8")
        except OSError:
            raise NoSuchProcess(
                f"the CPU of process {self._broker_pid} cannot be read: it has to run on this "
                "machine, and the system has to be Linux"
            ) from None
        # Split behind the name in parentheses, which may have blanks: user and system time are
        # fields 14 and 15.
        fields = text.rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """Measurements of one run."""

    command: str
    topic: str
    records: int
    size: int
    seconds: float
    client_cpu: float
    broker_cpu: float | None
    latencies_ms: Sequence[float] = ()

    def print(self, *, as_json: bool) -> None:
        if as_json:
            print_json(self.as_json())
            return
        for title, text in self._lines():
            click.echo(f"{title:<12}{text}")

    def _lines(self) -> list[tuple[str, str]]:
        rate, megabytes_rate = self._rates()
        lines = [
            ("records", f"{self.records:,} ({size_text(self.size)}) in {self.seconds:,.2f} s"),
            ("throughput", f"{rate:,.0f} records/s, {megabytes_rate:,.2f} MB/s"),
        ]
        latency = self._latency()
        if latency:
            shown = ", ".join(f"{name} {latency[name]:.2f}" for name in ("min", *QUANTILES, "max"))
            lines.append(("latency ms", f"{shown} ({len(self.latencies_ms):,} samples)"))
        lines.append(("client CPU", self._cpu_text(self.client_cpu)))
        if self.broker_cpu is not None:
            lines.append(("broker CPU", self._cpu_text(self.broker_cpu)))
        return lines

    def _cpu_text(self, cpu: float) -> str:
        """Write CPU time in total, for a record, and for a megabyte."""
        return (
            f"{cpu:.2f} s, {_ratio(cpu * 1e6, self.records):.2f} µs a record, "
            f"{_ratio(cpu * 1e3, self.size / 1e6):.2f} ms/MB"
        )

    def _rates(self) -> tuple[float, float]:
        return _ratio(self.records, self.seconds), _ratio(self.size / 1e6, self.seconds)

    def _latency(self) -> dict[str, float]:
        if not self.latencies_ms:
            return {}
        ordered = sorted(self.latencies_ms)
        found = {"min": ordered[0]}
        found.update({name: quantile(ordered, share) for name, share in QUANTILES.items()})
        found["max"] = ordered[-1]
        return found

    def as_json(self) -> dict[str, object]:
        """Return all figures under names with their units."""
        rate, megabytes_rate = self._rates()
        line: dict[str, object] = {
            "command": self.command,
            "topic": self.topic,
            "records": self.records,
            "bytes": self.size,
            "seconds": round(self.seconds, 6),
            "records_per_second": round(rate, 1),
            "megabytes_per_second": round(megabytes_rate, 3),
            "latency_ms": None,
        }
        latency = self._latency()
        if latency:
            rounded: dict[str, object] = {name: round(value, 3) for name, value in latency.items()}
            line["latency_ms"] = {**rounded, "samples": len(self.latencies_ms)}
        for who, cpu in (("client", self.client_cpu), ("broker", self.broker_cpu)):
            line[f"{who}_cpu"] = (
                None
                if cpu is None
                else {
                    "seconds": round(cpu, 3),
                    "microseconds_per_record": round(_ratio(cpu * 1e6, self.records), 3),
                    "milliseconds_per_megabyte": round(_ratio(cpu * 1e3, self.size / 1e6), 3),
                }
            )
        return line


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
