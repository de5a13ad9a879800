"""`tarry schedule load`: many records that wait, from a file of JSON lines or CSV."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Final

import click

from tarry.cli.running import (
    EXIT_FAILED,
    PRODUCER,
    Cluster,
    client_arguments,
    cluster_options,
    fail,
    orderly_sigterm,
    quietly,
)
from tarry.cli.tables import complain, count_of, printable

if TYPE_CHECKING:
    from tarry.cli.schedule_lines import LoadedLine
    from tarry.client import Producer, Receipt

# Bad lines that are printed, at most; further ones are counted.
TOLD_MAX: Final = 20

# Bytes of standard input that are kept in memory; a longer input is kept in a file meanwhile.
MEMORY_BYTES: Final = 8 * 1024 * 1024

EXAMPLES: Final = """
\b
Examples:
  tarry schedule load reminders calls.jsonl
  tarry schedule load reminders calls.csv
  generate | tarry schedule load reminders - --csv
  tarry schedule load reminders calls.csv --check     reads the file and sends nothing

\b
A line of JSON:   {"due": "2026-12-24T18:00Z", "id": "call-7", "key": "anna", "value": "ring"}
CSV:              due,id,key,value
                  +2h,call-7,anna,ring

\b
due: milliseconds since 1970, a time, or +2h from now.  id: the record's x-sched-id, if
it is to have one.  All other fields are those of tarry produce --json and --csv.
"""


@click.command("load", epilog=EXAMPLES)
@click.argument("topic")
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--csv", "from_csv", is_flag=True, help="The file is CSV (default: if it ends so).")
@click.option("--check", "only_checks", is_flag=True, help="Read the file, and send nothing.")
@click.option("--skip-bad", is_flag=True, help="Send the good lines though there are bad ones.")
@cluster_options
@quietly
def load_command(
    topic: str,
    path: str,
    *,
    cluster: Cluster,
    from_csv: bool,
    only_checks: bool,
    skip_bad: bool,
) -> None:
    """Let many records wait in TOPIC: those of FILE, or of stdin for -.

    The whole file is read first.  If a line is bad it is named with the reason, and nothing is
    sent.  The topic needs delay.enable=true and delay.source=header.
    """
    now_wall_ms = time.time_ns() // 1_000_000
    is_csv = from_csv or path.lower().endswith(".csv")
    with _opened(path) as stream:
        count, bad_count = _check(_lines_of(stream, now_wall_ms, is_csv=is_csv))
        if bad_count and not skip_bad:
            fail(f"{count_of(bad_count, 'bad line')}; nothing was sent")
        if only_checks:
            click.echo(f"{count_of(count, 'record')} can be sent", err=True)
            if bad_count:
                sys.exit(EXIT_FAILED)
            return
        _check_topic(cluster, topic)
        stream.seek(0)
        with orderly_sigterm():
            _send(cluster, topic, _lines_of(stream, now_wall_ms, is_csv=is_csv))
    if bad_count:
        fail(f"{count_of(bad_count, 'bad line')} left out")


def _opened(path: str) -> IO[bytes]:
    """Open the file; stdin is copied, since it is read twice."""
    if path != "-":
        return open(path, "rb")
    copy = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, copy)
    copy.seek(0)
    return copy


def _lines_of(stream: IO[bytes], now_wall_ms: int, *, is_csv: bool) -> Iterator[LoadedLine]:
    from tarry.cli.schedule_lines import csv_lines, json_lines

    return (csv_lines if is_csv else json_lines)(stream, now_wall_ms)


def _check(lines: Iterator[LoadedLine]) -> tuple[int, int]:
    """Read all lines and name bad ones; return how many are good and how many bad."""
    count = bad_count = 0
    for line in lines:
        if line.record is not None:
            count += 1
            continue
        bad_count += 1
        if bad_count <= TOLD_MAX:
            complain(f"line {line.number}: {line.reason}")
    return count, bad_count


def _check_topic(cluster: Cluster, topic: str) -> None:
    """Refuse a topic in which the records would appear at once."""
    with cluster.admin() as admin:
        entries = admin.describe_topic_configs(topic, cluster.timeout)
    values = {entry.name: entry.value for entry in entries}
    if "delay.enable" not in values:
        fail("the broker has no scheduled records")
    if values["delay.enable"] != "true" or values.get("delay.source") != "header":
        fail(
            f"topic {printable(topic)} would take them at once: it needs delay.enable=true and "
            f"delay.source=header, see tarry topics alter"
        )


class _Deliveries:
    """Count of acknowledged records, and the lines whose records were not acknowledged."""

    def __init__(self) -> None:
        self.sent = 0
        self.refused = 0

    def send(self, producer: Producer, topic: str, line: LoadedLine) -> None:
        record = line.record
        assert record is not None

        def on_delivery(receipt: Receipt) -> None:
            if receipt.error is None:
                return
            self.refused += 1
            if self.refused <= TOLD_MAX:
                complain(f"line {line.number}: {receipt.error}")

        self.sent += 1
        producer.send(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=record.partition,
            timestamp=record.timestamp,
            on_delivery=on_delivery,
        )


def _send(cluster: Cluster, topic: str, lines: Iterator[LoadedLine]) -> None:
    from tarry.cli.status_line import Waiting
    from tarry.client import Producer

    deliveries = _Deliveries()
    settings = client_arguments(
        cluster.bootstrap, cluster.client_settings, owner=PRODUCER, enable_idempotence=True
    )
    with Producer(settings) as producer:
        producer.on_wait = Waiting(cluster.bootstrap).look
        for line in lines:
            if line.record is not None:
                deliveries.send(producer, topic, line)
        producer.flush()
    acknowledged = deliveries.sent - deliveries.refused
    if deliveries.refused:
        fail(
            f"{count_of(deliveries.sent, 'record')} were sent, {acknowledged:,} of them "
            "acknowledged"
        )
    click.echo(f"{count_of(acknowledged, 'record')} sent and acknowledged", err=True)
