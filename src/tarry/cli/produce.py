"""`tarry produce`: records from lines, files, JSON or CSV into a topic."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.core import ParameterSource

from tarry.cli.escapes import BadEscape, unescape
from tarry.cli.raw_text import RawText
from tarry.cli.running import (
    EXIT_INTERRUPTED,
    PRODUCER,
    bootstrap_option,
    client_arguments,
    key_values,
    orderly_sigterm,
    quietly,
    settings_option,
    timeout_option,
)
from tarry.cli.units import PARTITION_MAX, Count

if TYPE_CHECKING:
    from tarry.cli.input import InputSource, Shape
    from tarry.cli.record_input import RecordReader
    from tarry.cli.sending import RecordTarget, Sending
    from tarry.client import Producer

EXAMPLES = """
\b
Examples:
  echo hello | tarry produce greetings            one record for each line
  tarry produce orders -K: < orders.txt           7:apples has the key 7
  tarry produce logs -z zstd *.log                lines of files, compressed
  tarry produce images --whole cat.png dog.png    each file is one record
  echo 7: | tarry produce orders -K: -Z           a null value for the key 7 (a tombstone)
  tarry produce orders -f '%T %k=%s' < orders.txt time, key and value in each line
  tarry produce orders --csv orders.csv           a record for each row
  tarry produce orders --csv --key-column id      any columns: each row as an object of JSON
  tarry produce ids -K: --key-format int32        7:apples has the key 00 00 00 07
  tarry consume a --json | tarry produce b --json copies keys, values, headers and times

\b
Letters of a format: %t topic  %p partition  %T time  %k key  %s value  %h headers (n=v,n=v);
%o, %K and %S are read and left alone.  Text between two letters separates them.

\b
Columns of CSV: value, and of key, topic, partition, timestamp, headers, offset those that are
there.  Fields of JSON: value, key, headers, timestamp, topic, partition, and value_base64 or
key_base64 for bytes that are not text; the objects of kcat -J and of rpk are taken as well.

\b
Forms of keys and values: text, hex, base64, int8 to int64, uint8 to uint64, float, double
(big-endian), and kcat's pack strings, such as '<iq' or 'hs'.
"""

# Largest batch: the command is for throughput, the client's default is for latency.
BATCH_BYTES: Final = 128 * 1024

# Limit of the client: large enough that the broker's `max.message.bytes` decides.
REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024
BUFFER_BYTES: Final = 64 * 1024 * 1024

# Time that a record waits for room before the command checks whether there is progress.
BLOCK_MS: Final = 500


class _Input(NamedTuple):
    """Input of the command: how it is read."""

    whole: bool
    from_json: bool
    from_csv: bool
    layout: str | None
    key_column: str | None
    # Delimiter as it was typed; None if the user gave none.
    delimiter: str | None

    @property
    def names(self) -> list[str]:
        """The options that chose this kind of input."""
        given = {
            "--whole": self.whole,
            "--json": self.from_json,
            "--csv": self.from_csv,
            "--format": self.layout is not None,
        }
        return [name for name, is_given in given.items() if is_given]


@click.command(epilog=EXAMPLES)
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@bootstrap_option
@click.option(
    "-D",
    "--delimiter",
    type=RawText(),
    default="\\n",
    show_default=True,
    help="Text between two records.",
)
@click.option(
    "-K",
    "--key-delimiter",
    type=RawText(),
    metavar="TEXT",
    help="Text between the key and the value of a record.",
)
@click.option("-k", "--key", type=RawText(), help="Key of every record that has none of its own.")
@click.option(
    "-H",
    "--header",
    "headers",
    type=RawText(),
    multiple=True,
    metavar="NAME=VALUE",
    help="Header added to every record that has none of its own; repeatable.",
)
@click.option(
    "--timestamp",
    metavar="TIME",
    help="Time of every record that has none of its own: an ISO "
    "time, milliseconds since 1970, -10m (ten minutes ago) or +10s (in ten seconds).",
)
@click.option("-f", "--format", "layout", type=RawText(), help="What a line is; see below.")
@click.option(
    "--json", "from_json", is_flag=True, help="Lines of JSON, as tarry consume --json prints them."
)
@click.option("--csv", "from_csv", is_flag=True, help="Rows of CSV below a header row.")
@click.option("--key-column", metavar="NAME", help="With --csv: the column that is the key.")
@click.option("--whole", is_flag=True, help="Each file (or all of stdin) is one record.")
@click.option("--key-format", metavar="FORM", default="text", help="Form of the keys; see below.")
@click.option("--value-format", metavar="FORM", default="text", help="Form of the values.")
@click.option("-Z", "--null", "empty_is_null", is_flag=True, help="Empty keys and values are null.")
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(0, PARTITION_MAX),
    help="Partition of every record (default: by its key; without a key any).",
)
@click.option(
    "--keep-place",
    is_flag=True,
    help="With --json and --csv: send each record to the topic and partition that it names.",
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@click.option(
    "-a",
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="Replicas that must have a record before it counts as sent.",
)
@click.option("-c", "--count", type=Count(), help="Stop after this many records.")
@click.option("-T", "--tee", is_flag=True, help="Print the input to stdout as well.")
@click.option("-q", "--quiet", is_flag=True, help="No report and no progress on stderr.")
@settings_option
@timeout_option
@quietly
def produce(
    topic: str,
    files: tuple[str, ...],
    *,
    bootstrap: str,
    client_settings: tuple[str, ...],
    timeout: float,
    compression: str,
    acks: str,
    count: int | None,
    tee: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Send records to TOPIC: lines of stdin, or of files.

    All files are opened before the first record is sent.  The command returns when every record is
    acknowledged.  If one is not, the exit code is 1 and the message says how many records were
    sent and acknowledged.  If no record is acknowledged for the time of --timeout
    (delivery.timeout.ms unless --timeout is given), the command gives up.
    """
    from tarry.cli.input import opened
    from tarry.cli.patience import Patience
    from tarry.cli.sending import Sending, known_topic
    from tarry.cli.status_line import Waiting
    from tarry.client import Producer

    way = _input(options, tee=tee)
    shape = _shape(options)
    target = _target(topic, options)
    reader = _reader(way, shape)
    settings = client_arguments(
        bootstrap,
        client_settings,
        owner=PRODUCER,
        compression_type=compression,
        acks=acks,
        batch_size=BATCH_BYTES,
        max_request_size=REQUEST_BYTES_MAX,
        buffer_memory=BUFFER_BYTES,
        max_block_ms=BLOCK_MS,
    )
    with opened(files) as sources, orderly_sigterm(), Producer(settings) as producer:
        producer.on_wait = Waiting(bootstrap).look
        known_topic(producer, topic, timeout)
        if not quiet and not files and sys.stdin.isatty():
            click.echo("one record for each line; Ctrl-D ends the input", err=True)
        patience = Patience(_patience_seconds(timeout, producer))
        sending = Sending(producer, target, count, patience, tee=tee, quiet=quiet)
        sending.size_max = _size_of(sources)
        is_interrupted = sending.run(lambda: _send(sending, sources, shape, way, reader))
        if not quiet:
            click.echo(sending.report(), err=True)
    if is_interrupted:
        sys.exit(EXIT_INTERRUPTED)


def _send(
    sending: Sending,
    sources: list[InputSource],
    shape: Shape,
    way: _Input,
    reader: RecordReader | None,
) -> None:
    from tarry.cli.sending import send_pieces, send_records, send_whole

    if reader is not None:
        send_records(sending, sources, shape, reader)
    elif way.whole:
        send_whole(sending, sources, shape)
    else:
        send_pieces(sending, sources, shape)


def _patience_seconds(timeout: float, producer: Producer) -> float:
    """Return how long to wait; by default long enough for a broker that restarts."""
    source = click.get_current_context().get_parameter_source("timeout")
    if source is ParameterSource.DEFAULT:
        return producer.settings.delivery_timeout_ms / 1000
    return timeout


def _size_of(sources: list[InputSource]) -> int:
    """Return the bytes of all inputs; 0 if the size of one is not known."""
    sizes = [source.size for source in sources]
    return sum(sizes) if all(sizes) else 0


# --- Options


def _input(options: dict[str, Any], *, tee: bool) -> _Input:
    """Return how the input is read; options that exclude each other are wrong usage."""
    delimiter = options["delimiter"]
    context = click.get_current_context()
    is_typed = context.get_parameter_source("delimiter") is not ParameterSource.DEFAULT
    way = _Input(
        options["whole"],
        options["from_json"],
        options["from_csv"],
        options["layout"],
        options["key_column"],
        delimiter if is_typed else None,
    )
    names = way.names
    if options["key_delimiter"] is not None:
        names.append("--key-delimiter")
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} exclude each other")
    if way.key_column is not None and not way.from_csv:
        raise click.UsageError("--key-column needs --csv")
    if options["keep_place"] and not (way.from_json or way.from_csv):
        raise click.UsageError("--keep-place needs --json or --csv")
    if tee and (way.from_json or way.from_csv or way.layout is not None):
        raise click.UsageError(f"--tee is for lines and whole files, not for {names[0]}")
    if is_typed and (way.from_json or way.from_csv or way.whole):
        raise click.UsageError(f"--delimiter and {names[0]} exclude each other")
    return way


def _reader(way: _Input, shape: Shape) -> RecordReader | None:
    """Return the reader of JSON, CSV or a template; None for lines and whole files."""
    from tarry.cli.formats import BadFormat
    from tarry.cli.record_input import csv_reader, json_reader, template_reader

    if way.from_json:
        return json_reader()
    if way.from_csv:
        return csv_reader(way.key_column)
    if way.layout is None:
        return None
    try:
        return template_reader(way.layout, shape.delimiter)
    except BadFormat as error:
        raise click.UsageError(str(error)) from None


def _target(topic: str, options: dict[str, Any]) -> RecordTarget:
    from tarry.cli.packing import BadForm, parse_form
    from tarry.cli.places import BadPlace, parse_time_ms
    from tarry.cli.sending import RecordTarget

    given = options["timestamp"]
    try:
        return RecordTarget(
            topic,
            options["partition"],
            options["keep_place"] or options["layout"] is not None,
            parse_form(options["key_format"]),
            parse_form(options["value_format"]),
            None if given is None else parse_time_ms(given, time.time_ns() // 1_000_000),
        )
    except (BadForm, BadPlace) as error:
        raise click.UsageError(str(error)) from None


def _shape(options: dict[str, Any]) -> Shape:
    from tarry.cli.input import Shape

    pairs = _headers(options["headers"])
    key, key_delimiter = options["key"], options["key_delimiter"]
    return Shape(
        _bytes_of(options["delimiter"], "delimiter"),
        None if key_delimiter is None else _bytes_of(key_delimiter, "key delimiter"),
        None if key is None else os.fsencode(key),
        pairs or None,
        options["empty_is_null"],
    )


def _headers(given: tuple[str, ...]) -> list[tuple[str, bytes | None]]:
    """Parse headers: names are UTF-8, values any bytes; a name may come twice."""
    found: list[tuple[str, bytes | None]] = []
    for one in given:
        for name, text in key_values([one], "header").items():
            try:
                name.encode()
            except UnicodeEncodeError:
                raise click.UsageError(
                    f"invalid header {one!r}: its name is not valid UTF-8"
                ) from None
            found.append((name, os.fsencode(text)))
    return found


def _bytes_of(text: str, what: str) -> bytes:
    try:
        found = unescape(text)
    except BadEscape as error:
        raise click.UsageError(f"invalid {what} {text!r}: {error}") from None
    if not found:
        raise click.UsageError(f"the {what} is empty")
    return found
