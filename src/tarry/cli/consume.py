"""`tarry consume`: records of a topic to stdout."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tarry.cli.running import (
    bootstrap_option,
    client_arguments,
    fail,
    orderly_sigterm,
    quietly,
    settings_option,
    timeout_option,
)

if TYPE_CHECKING:
    from tarry.cli.formats import Renderer
    from tarry.cli.places import Place
    from tarry.client.settings import SettingValue

EXAMPLES = """
\b
Examples:
  tarry consume orders                        everything up to the end of now, a line a value
  tarry consume orders -o end --follow        what comes from now on; Ctrl-C ends
  tarry consume orders -o -10                 the last ten records of each partition
  tarry consume orders -p 0 -o 1000 -c 1      the record at offset 1000 of partition 0
  tarry consume orders -o 0=100,1=end         an offset for each partition
  tarry consume orders --from 2026-11-21T08:00 --to -10m
  tarry consume orders -f '%t [%p] at %o: %k = %s\\n'
  tarry consume orders --json | jq .value
  tarry consume images -p 0 -c 1 -D '' > cat.png

\b
As a member of a group, which shares the partitions out and keeps what was read:
  tarry consume orders --group billing                 what billing has not read yet
  tarry consume orders --group billing --follow        and what comes; run it several times
  tarry consume orders --group billing --follow --assignor cooperative-sticky
  tarry consume orders --group billing --no-commit     only look

\b
Letters of a format, as in kcat:
  %t topic  %p partition  %o offset  %T timestamp (ms)  %k key  %s value  %h headers
  %K size of the key  %S size of the value (-1: null)  %R the same in 4 bytes  %% a percent sign
  \\n \\t \\r \\0 \\xNN bytes

\b
Offsets: beginning, end, 1000, -10 (from the end), s@TIME; times: 2026-11-21T08:00 (with Z or
+02:00 if it is not local), milliseconds since 1970, -10m (ago; ms s m h d).
"""

# No format looks like this: %j is no letter of one.
JSON: Final = "%json"


@click.command(epilog=EXAMPLES)
@click.argument("topic")
@bootstrap_option
@click.option("-p", "--partition", "partitions", metavar="N,N-N", help="Only these.")
@click.option("-o", "--offset", default="beginning", show_default=True, help="Where to begin.")
@click.option("--from", "from_time", metavar="TIME", help="Begin at the first record since then.")
@click.option("--to", "to_time", metavar="TIME", help="End before the first record since then.")
@click.option("-c", "--count", type=click.IntRange(1), help="End after so many records.")
@click.option("-F", "--follow", is_flag=True, help="Go on at the end and wait for more.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="End at the end; the default.")
@click.option("-G", "--group", metavar="NAME", help="Read as a member of this group, and commit.")
@click.option(
    "--assignor",
    type=click.Choice(["range", "roundrobin", "cooperative-sticky"]),
    help="How the group shares partitions out; by default range or cooperative-sticky.",
)
@click.option(
    "--instance-id", metavar="NAME", help="A member that may restart without a rebalance."
)
@click.option("--no-commit", is_flag=True, help="The group does not remember what was read.")
@click.option("-f", "--format", "layout", metavar="FORMAT", help="What to print; see below.")
@click.option("-J", "--json", "as_json", is_flag=True, help="A line of JSON for each record.")
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="Behind each value.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Print keys, and this behind them.")
@click.option("-O", "--print-offset", is_flag=True, help="Print offsets before the values.")
@click.option("-Z", "--null", "show_null", is_flag=True, help="Print NULL for null, not nothing.")
@settings_option
@timeout_option
@quietly
def consume(
    topic: str,
    *,
    bootstrap: str,
    partitions: str | None,
    offset: str,
    from_time: str | None,
    to_time: str | None,
    count: int | None,
    follow: bool,
    exit_at_end: bool,
    group: str | None,
    assignor: str | None,
    instance_id: str | None,
    no_commit: bool,
    layout: str | None,
    as_json: bool,
    delimiter: str,
    key_delimiter: str | None,
    print_offset: bool,
    show_null: bool,
    client_settings: tuple[str, ...],
    timeout: float,
) -> None:
    """Print the records of TOPIC: up to its end, or on and on with --follow."""
    if follow and exit_at_end:
        raise click.UsageError("--follow and --exit exclude each other")
    if as_json and layout is not None:
        raise click.UsageError("--json and --format exclude each other")
    renderer = _renderer(
        JSON if as_json else layout,
        (delimiter, key_delimiter),
        with_offset=print_offset,
        null=b"NULL" if show_null else b"",
    )
    if group is None:
        if assignor or instance_id or no_commit:
            raise click.UsageError(
                "--assignor, --instance-id and --no-commit are for members: give --group too"
            )
        span = _span(offset, from_time, to_time, partitions)
        settings = client_arguments(
            bootstrap, client_settings, auto_offset_reset="none", allow_auto_create_topics=False
        )
        _read(settings, topic, renderer, span, timeout, count=count, follow=follow)
        return
    if from_time or to_time or partitions:
        raise click.UsageError(
            "a group says itself what its members read and from where: leave out --partition, "
            "--from and --to, and see tarry groups reset-offsets"
        )
    settings = client_arguments(
        bootstrap,
        client_settings,
        **_membership(group, assignor, instance_id),
        auto_offset_reset=_reset(offset),
    )
    limits = (count, follow, not no_commit)
    _read_as_member(settings, topic, renderer, timeout, limits)


def _read(
    settings: dict[str, SettingValue],
    topic: str,
    renderer: Renderer,
    span: _Span,
    timeout: float,
    *,
    count: int | None,
    follow: bool,
) -> None:
    """Without a group: from one place to another."""
    from tarry.cli.reading import Limits, Reading
    from tarry.client.errors import UnknownTopic
    from tarry.client.sync.consumer import Consumer

    with Consumer(settings) as consumer:
        reading = Reading(consumer, topic, renderer, sys.stdout.buffer, timeout)
        try:
            reading.choose(span.partitions)
        except UnknownTopic as error:
            fail(str(error))
        reading.begin(span.start, span.single)
        reading.run(Limits(count, span.until_ms, follow))


def _read_as_member(
    settings: dict[str, SettingValue],
    topic: str,
    renderer: Renderer,
    timeout: float,
    limits: tuple[int | None, bool, bool],
) -> None:
    from tarry.cli.group_reading import GroupLimits, GroupReading
    from tarry.client.sync.consumer import Consumer

    # Its partitions would stand still for a session time-out if it went without a word.
    with orderly_sigterm(), Consumer(settings) as consumer:
        reading = GroupReading(consumer, topic, renderer, sys.stdout.buffer, timeout)
        reading.run(GroupLimits(*limits))


def _membership(
    group: str, assignor: str | None, instance_id: str | None
) -> dict[str, SettingValue]:
    """The settings of a member; it commits itself, when records are written out."""
    settings: dict[str, SettingValue] = {
        "group_id": group,
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }
    if assignor is not None:
        settings["partition_assignment_strategy"] = assignor
    if instance_id is not None:
        settings["group_instance_id"] = instance_id
    return settings


def _reset(offset: str) -> str:
    """Where to begin in partitions for which the group has committed nothing."""
    known = {"beginning": "earliest", "earliest": "earliest", "end": "latest", "latest": "latest"}
    if offset not in known:
        raise click.UsageError(
            f"with --group, --offset is only for partitions without a commit: beginning or end, "
            f"not {offset}; tarry groups reset-offsets sets what is committed"
        )
    return known[offset]


class _Span(NamedTuple):
    """Which partitions, from where and until when."""

    partitions: list[int] | None
    start: Place
    single: dict[int, Place]
    until_ms: int | None


def _span(offset: str, from_time: str | None, to_time: str | None, partitions: str | None) -> _Span:
    from tarry.cli.places import (
        TIME,
        BadPlace,
        Place,
        parse_partitions,
        parse_places,
        parse_time_ms,
    )

    now_ms = time.time_ns() // 1_000_000
    try:
        start, single = parse_places(offset, now_ms)
        if from_time is not None:
            start = Place(TIME, parse_time_ms(from_time, now_ms))
        until_ms = None if to_time is None else parse_time_ms(to_time, now_ms)
        chosen = None if partitions is None else parse_partitions(partitions)
    except BadPlace as error:
        raise click.UsageError(str(error)) from None
    return _Span(chosen, start, single, until_ms)


def _renderer(
    layout: str | None, delimiters: tuple[str, str | None], *, with_offset: bool, null: bytes
) -> Renderer:
    """What turns records into bytes: JSON, a format of kcat's letters, or plain values."""
    from tarry.cli.escapes import BadEscape, unescape
    from tarry.cli.formats import BadFormat, PlainRenderer, compile_format, json_renderer

    delimiter, key_delimiter = delimiters
    try:
        if layout == JSON:
            return json_renderer
        if layout is not None:
            return compile_format(layout, null)
        return PlainRenderer(
            unescape(delimiter),
            None if key_delimiter is None else unescape(key_delimiter),
            with_offset=with_offset,
            null=null,
        )
    except (BadFormat, BadEscape) as error:
        raise click.UsageError(str(error)) from None
