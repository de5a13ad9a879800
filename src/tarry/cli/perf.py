"""`tarry perf`: how fast a cluster takes and gives records, measured with Tarry's own client."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.running import (
    CONSUMER,
    EXIT_INTERRUPTED,
    PRODUCER,
    GuessingGroup,
    bootstrap_option,
    client_arguments,
    json_option,
    quietly,
    settings_option,
    timeout_option,
)
from tarry.cli.units import PARTITION_MAX, Count, Size

if TYPE_CHECKING:
    from tarry.cli.perf_runs import Run

EXAMPLES = """
\b
Examples:
  tarry topics create perf -p 4
  tarry perf produce perf -n 1M -s 100       a million records of 100 bytes
  tarry perf consume perf                    all of them back
  tarry perf latency perf -n 1000            one after the other, there and back
"""

PRODUCE_EXAMPLES = """
\b
Examples:
  tarry perf produce perf                             100,000 records of 100 bytes
  tarry perf produce perf -n 1M -s 1kB -z lz4         a million of 1,000 bytes, compressed
  tarry perf produce perf --rate 10k                  10,000 records a second
  tarry perf produce perf -n 5000 --one-at-a-time     each after the last acknowledgement
  tarry perf produce perf -s 1kB -X batch.size=1000000 --broker-pid 4711 --json

\b
Batches are of 128 KiB unless -X batch.size says otherwise.  Latency is the time from `send` to the
acknowledgement, of every 100th record, and at full speed most of it is waiting for room.
"""

CONSUME_EXAMPLES = """
\b
Examples:
  tarry perf consume perf                     from the beginning up to the end of now
  tarry perf consume perf -n 1M               end after a million records
  tarry perf consume perf -X fetch.max.bytes=10000000 --json
"""

LATENCY_EXAMPLES = """
\b
Examples:
  tarry perf latency perf                     1,000 records of 100 bytes
  tarry perf latency perf -n 10k -s 1kB -p 3  of 1,000 bytes, through partition 3
  tarry perf latency perf -a 1 --json
"""

BATCH_BYTES: Final = 128 * 1024
REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024
BUFFER_BYTES: Final = 64 * 1024 * 1024

# Text of the records: codecs compress it neither to nothing nor badly.
PATTERN: Final = b"the quick brown fox jumps over the lazy dog; 0123456789 "

broker_pid_option = click.option(
    "--broker-pid",
    type=click.IntRange(1),
    metavar="PID",
    help="Measure the CPU of this process as well: a broker on this machine (Linux).",
)
acks_option = click.option(
    "-a",
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="Replicas that must have a record before it counts as sent.",
)
# Largest record: a request has 100 MiB at most, whatever max.message.bytes is.
SIZE_MAX: Final = 100 * 1024 * 1024

size_option = click.option(
    "-s",
    "--size",
    type=Size(0, SIZE_MAX),
    default="100",
    show_default=True,
    help="Bytes of each value.",
)


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def perf() -> None:
    """Measure throughput, latency and CPU of producing and consuming."""


@perf.command("produce", epilog=PRODUCE_EXAMPLES)
@click.argument("topic")
@bootstrap_option
@click.option(
    "-n",
    "--records",
    "count",
    type=Count(1),
    default="100000",
    show_default=True,
    help="Number of records to send.",
)
@size_option
@click.option("--rate", type=Count(1), help="Records a second (default: as fast as it goes).")
@click.option("--one-at-a-time", is_flag=True, help="Send after the last one is acknowledged.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@acks_option
@broker_pid_option
@settings_option
@timeout_option
@json_option
@quietly
def produce_command(
    topic: str,
    *,
    bootstrap: str,
    client_settings: tuple[str, ...],
    timeout: float,
    count: int,
    size: int,
    rate: int | None,
    one_at_a_time: bool,
    compression: str,
    acks: str,
    broker_pid: int | None,
    as_json: bool,
) -> None:
    """Send records to TOPIC as fast as they are taken, and measure it."""
    from tarry.cli.perf_runs import ProduceRun
    from tarry.cli.sending import known_topic
    from tarry.cli.status_line import Waiting
    from tarry.client import Producer

    if rate is not None and one_at_a_time:
        raise click.UsageError("--rate and --one-at-a-time exclude each other")
    settings = client_arguments(
        bootstrap,
        client_settings,
        owner=PRODUCER,
        compression_type=compression,
        acks=acks,
        batch_size=BATCH_BYTES,
        max_request_size=REQUEST_BYTES_MAX,
        buffer_memory=BUFFER_BYTES,
        linger_ms=0 if one_at_a_time else 5,
        allow_auto_create_topics=False,
    )
    with Producer(settings) as producer:
        producer.on_wait = Waiting(bootstrap).look
        known_topic(producer, topic, timeout)
        run = ProduceRun(producer, topic, broker_pid)
        run.run(count, value_of(size), rate, one_at_a_time=one_at_a_time)
        _report(run, as_json=as_json)


@perf.command("consume", epilog=CONSUME_EXAMPLES)
@click.argument("topic")
@bootstrap_option
@click.option("-n", "--records", "count", type=Count(1), help="End after this many records.")
@broker_pid_option
@settings_option
@timeout_option
@json_option
@quietly
def consume_command(
    topic: str,
    *,
    bootstrap: str,
    client_settings: tuple[str, ...],
    timeout: float,
    count: int | None,
    broker_pid: int | None,
    as_json: bool,
) -> None:
    """Read all records of TOPIC as fast as they come, and measure it."""
    from tarry.cli.perf_runs import ConsumeRun
    from tarry.cli.status_line import Waiting
    from tarry.client import Consumer

    settings = client_arguments(
        bootstrap,
        client_settings,
        owner=CONSUMER,
        auto_offset_reset="none",
        allow_auto_create_topics=False,
    )
    with Consumer(settings) as consumer:
        consumer.on_wait = Waiting(bootstrap).look
        run = ConsumeRun(consumer, topic, broker_pid)
        run.run(count, timeout)
        _report(run, as_json=as_json)


@perf.command("latency", epilog=LATENCY_EXAMPLES)
@click.argument("topic")
@bootstrap_option
@click.option(
    "-n",
    "--records",
    "count",
    type=Count(1),
    default="1000",
    show_default=True,
    help="Number of records to send.",
)
@size_option
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(0, PARTITION_MAX),
    default=0,
    show_default=True,
    help="Partition that the records go through.",
)
@acks_option
@broker_pid_option
@settings_option
@timeout_option
@json_option
@quietly
def latency_command(
    topic: str,
    *,
    bootstrap: str,
    client_settings: tuple[str, ...],
    timeout: float,
    count: int,
    size: int,
    partition: int,
    acks: str,
    broker_pid: int | None,
    as_json: bool,
) -> None:
    """Send records to TOPIC one after the other, and measure the time until each is read."""
    from tarry.cli.perf_runs import LatencyRun
    from tarry.cli.sending import known_topic
    from tarry.cli.status_line import Waiting
    from tarry.client import Consumer, Producer

    # The user's settings go to both clients, so only settings that every client has are allowed.
    sending = client_arguments(
        bootstrap,
        client_settings,
        owner=PRODUCER,
        acks=acks,
        linger_ms=0,
        allow_auto_create_topics=False,
        max_request_size=REQUEST_BYTES_MAX,
        buffer_memory=BUFFER_BYTES,
    )
    reading = client_arguments(
        bootstrap,
        client_settings,
        owner=CONSUMER,
        auto_offset_reset="none",
        allow_auto_create_topics=False,
    )
    with Producer(sending) as producer, Consumer(reading) as consumer:
        producer.on_wait = consumer.on_wait = Waiting(bootstrap).look
        known_topic(producer, topic, timeout)
        run = LatencyRun(producer, consumer, topic, broker_pid)
        run.run(count, value_of(size), partition, timeout)
        _report(run, as_json=as_json)


def value_of(size: int) -> bytes:
    """Make a value of so many bytes."""
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def _report(run: Run, *, as_json: bool) -> None:
    run.figures().print(as_json=as_json)
    if run.is_interrupted:
        sys.exit(EXIT_INTERRUPTED)
