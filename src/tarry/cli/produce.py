"""`tarry produce`: records from lines, files or JSON into a topic."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from tarry.cli.escapes import BadEscape, unescape
from tarry.cli.running import (
    EXIT_INTERRUPTED,
    bootstrap_option,
    client_arguments,
    fail,
    key_values,
    quietly,
    settings_option,
    timeout_option,
)

if TYPE_CHECKING:
    from tarry.cli.input import Shape
    from tarry.client.sync.producer import Producer

EXAMPLES = """
\b
Examples:
  echo hello | tarry produce greetings            one record a line
  tarry produce orders -K: < orders.txt           7:apples has the key 7
  tarry produce logs -z zstd *.log                lines of files, compressed
  tarry produce images --whole cat.png dog.png    each file is one record
  echo 7: | tarry produce orders -K: -Z           a null value for the key 7 (a tombstone)
  tarry consume a --json | tarry produce b --json copies keys, values, headers, times
"""

# What a batch may grow to: the command is for throughput, a library's default is for latency.
BATCH_BYTES: Final = 128 * 1024

# The broker's `max.message.bytes` decides what is too large, not a limit of ours.
REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024
BUFFER_BYTES: Final = 64 * 1024 * 1024

# How long a record waits for room before somebody looks whether there is progress at all.
BLOCK_MS: Final = 500


@click.command(epilog=EXAMPLES)
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@bootstrap_option
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="Between records.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Between key and value of a record.")
@click.option("-k", "--key", help="The key of all records that have none of their own.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="For all.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@click.option("-p", "--partition", type=click.IntRange(0), help="Else by key, else any.")
@click.option(
    "-a",
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="Who must have a record before it counts.",
)
@click.option("-c", "--count", type=click.IntRange(0), help="Stop after so many records.")
@click.option("-Z", "--null", "empty_is_null", is_flag=True, help="Empty keys and values are null.")
@click.option("--whole", is_flag=True, help="Each file (or stdin) is one record.")
@click.option(
    "--json", "from_json", is_flag=True, help="Lines as tarry consume --json prints them."
)
@click.option("-T", "--tee", is_flag=True, help="Print the input to stdout as well.")
@click.option("-q", "--quiet", is_flag=True, help="No report on stderr.")
@settings_option
@timeout_option
@quietly
def produce(
    topic: str,
    files: tuple[str, ...],
    *,
    bootstrap: str,
    delimiter: str,
    key_delimiter: str | None,
    key: str | None,
    headers: tuple[str, ...],
    compression: str,
    partition: int | None,
    acks: str,
    count: int | None,
    empty_is_null: bool,
    whole: bool,
    from_json: bool,
    tee: bool,
    quiet: bool,
    client_settings: tuple[str, ...],
    timeout: float,
) -> None:
    """Send records to TOPIC: lines of stdin, or of files.

    Returns when every record is acknowledged; the exit code is 1 if one was not.  If no record is
    acknowledged for the time of --timeout (delivery.timeout.ms unless it is given), it gives up.
    """
    from tarry.cli.patience import Patience
    from tarry.cli.sending import Sending, send_json, send_pieces, send_whole
    from tarry.client.errors import UnknownTopic
    from tarry.client.sync.producer import Producer

    if sum((whole, from_json, key_delimiter is not None)) > 1:
        raise click.UsageError("--whole, --json and --key-delimiter exclude each other")
    shape = _shape(delimiter, key_delimiter, key, headers, empty_is_null=empty_is_null)
    settings = client_arguments(
        bootstrap,
        client_settings,
        compression_type=compression,
        acks=acks,
        batch_size=BATCH_BYTES,
        max_request_size=REQUEST_BYTES_MAX,
        buffer_memory=BUFFER_BYTES,
        max_block_ms=BLOCK_MS,
    )
    send = send_whole if whole else send_json if from_json else send_pieces
    with Producer(settings) as producer:
        try:
            producer.partition_count(topic, timeout)
        except UnknownTopic as error:
            fail(f"{error}; make it with: tarry topics create {shlex.quote(topic)}")
        if not quiet and not files and sys.stdin.isatty():
            click.echo("one record a line; Ctrl-D ends", err=True)
        patience = Patience(_patience_seconds(timeout, producer))
        sending = Sending(producer, topic, partition, count, patience, tee=tee)
        is_interrupted = sending.run(lambda: send(sending, files, shape))
        if not quiet:
            click.echo(sending.report(), err=True)
    if is_interrupted:
        sys.exit(EXIT_INTERRUPTED)


def _patience_seconds(timeout: float, producer: Producer) -> float:
    """Who did not say how long to wait wants a broker that restarts to be waited for."""
    source = click.get_current_context().get_parameter_source("timeout")
    if source is ParameterSource.DEFAULT:
        return producer.settings.delivery_timeout_ms / 1000
    return timeout


def _shape(
    delimiter: str,
    key_delimiter: str | None,
    key: str | None,
    headers: tuple[str, ...],
    *,
    empty_is_null: bool,
) -> Shape:
    from tarry.cli.input import Shape

    pairs: list[tuple[str, bytes | None]] = [
        (name, text.encode()) for name, text in key_values(headers, "header").items()
    ]
    return Shape(
        _bytes_of(delimiter, "delimiter"),
        None if key_delimiter is None else _bytes_of(key_delimiter, "key delimiter"),
        None if key is None else key.encode(),
        pairs or None,
        empty_is_null,
    )


def _bytes_of(text: str, what: str) -> bytes:
    try:
        found = unescape(text)
    except BadEscape as error:
        raise click.UsageError(f"the {what}: {error}") from None
    if not found:
        raise click.UsageError(f"the {what} is empty")
    return found
