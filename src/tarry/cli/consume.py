"""`tarry consume`: records of topics to stdout."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.core import ParameterSource

from tarry.cli.raw_text import RawText
from tarry.cli.running import (
    CONSUMER,
    bootstrap_option,
    client_arguments,
    fail,
    orderly_sigterm,
    quietly,
    settings_option,
    timeout_option,
)
from tarry.cli.units import Count

if TYPE_CHECKING:
    import re

    from tarry.cli.dress import Dress
    from tarry.cli.formats import PlainRenderer, Renderer
    from tarry.cli.ranges import Ranges
    from tarry.cli.reading import Output
    from tarry.client.errors import UnknownTopic
    from tarry.client.settings import SettingValue

EXAMPLES = """
\b
Examples:
  tarry consume orders                        everything up to the end of now, a line a value
  tarry consume orders -o end --follow        what comes from now on; Ctrl-C ends
  tarry consume orders -o -10                 the last ten records of each partition
  tarry consume orders -p 0 -o 1000 -c 1      the record at offset 1000 of partition 0
  tarry consume orders -o 0=100..200,1=-10    a range for each partition
  tarry consume orders --from 2026-11-21T08:00 --to -10m
  tarry consume orders refunds -f '%t %s\\n'   several topics
  tarry consume 'orders-*' '^log'             by pattern and by regular expression
  tarry consume orders --grep apples          records with apples in the key or the value
  tarry consume orders --isolation read_committed    nothing that was aborted or is open
  tarry consume orders -f '%T{iso} %k = %s\\n' readable times
  tarry consume ids --key-format int32 -K:    keys that are numbers in 4 bytes
  tarry consume orders --json | jq .value
  tarry consume orders --csv > orders.csv     with a header row
  tarry consume images -p 0 -c 1 -D '' > cat.png

\b
As a member of a group, which shares the partitions out and keeps what was read:
  tarry consume orders --group billing                 what billing has not read yet
  tarry consume orders --group billing --follow        and what comes; run it several times
  tarry consume orders --group billing --follow --assignor cooperative-sticky
  tarry consume orders --group billing --no-commit     only look

\b
Letters of a format, as in kcat:
  %t topic  %p partition  %o offset  %T time (ms)  %k key  %s value  %h headers
  %K size of the key  %S size of the value (-1: null)  %R the same in 4 bytes  %% a percent sign
  %T{iso} and %T{%Y-%m-%d %H:%M:%S} a readable time  \\n \\t \\r \\0 \\xNN bytes

\b
Offsets: beginning, end, 1000, -10 (from the end), s@TIME; 100..200 ends before offset 200.
Times: 2026-11-21T08:00 (with Z or +02:00 if it is not local), milliseconds since 1970, -10m (ago;
ms s m h d).

\b
Forms of keys and values: text, hex, base64, int8 to int64, uint8 to uint64, float, double
(big-endian), and kcat's pack strings, such as '<iq' or 'hs'.

\b
On a terminal, control characters are shown as \\xNN and keys are coloured (not with NO_COLOR).
Into a file or a pipe the bytes go as they are.
"""


@click.command(epilog=EXAMPLES)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@bootstrap_option
@click.option("-p", "--partition", "partitions", metavar="N,N-N", help="Only these partitions.")
@click.option(
    "-o",
    "--offset",
    default="beginning",
    show_default=True,
    metavar="OFFSET",
    help="Where to begin, or START..END; N=OFFSET,N=OFFSET for single partitions.",
)
@click.option("--from", "from_time", metavar="TIME", help="Begin at the first record since then.")
@click.option("--to", "to_time", metavar="TIME", help="End before the first record since then.")
@click.option("-c", "--count", type=Count(1), help="End after this many records.")
@click.option("-F", "--follow", is_flag=True, help="Go on at the end and wait for more.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="End at the end; the default.")
@click.option(
    "--grep",
    type=RawText(),
    metavar="PATTERN",
    help="Only records with this regular expression in the key or the value.",
)
@click.option(
    "--grep-key",
    type=RawText(),
    metavar="PATTERN",
    help="Only records with this regular expression in the key.",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="Leave out records of transactions that are open or were aborted (default: read them).",
)
@click.option("--rack", metavar="NAME", help="Read from replicas in this rack where there are any.")
@click.option("-G", "--group", metavar="NAME", help="Read as a member of this group, and commit.")
@click.option(
    "--assignor",
    type=click.Choice(["range", "roundrobin", "sticky", "cooperative-sticky"]),
    help="How the group shares partitions out (default: range or cooperative-sticky).",
)
@click.option(
    "--instance-id", metavar="NAME", help="A member that may restart without a rebalance."
)
@click.option("--no-commit", is_flag=True, help="Do not commit what was read.")
@click.option(
    "-f", "--format", "layout", type=RawText(), metavar="FORMAT", help="What to print; see below."
)
@click.option("-J", "--json", "as_json", is_flag=True, help="A line of JSON for each record.")
@click.option("--csv", "as_csv", is_flag=True, help="A row of CSV for each record.")
@click.option(
    "--only",
    type=click.Choice(["key", "value", "headers"]),
    help="Print this part of a record only.",
)
@click.option("--key-format", metavar="FORM", default="text", help="Form of the keys; see below.")
@click.option("--value-format", metavar="FORM", default="text", help="Form of the values.")
@click.option(
    "-D",
    "--delimiter",
    type=RawText(),
    default="\\n",
    show_default=True,
    help="Text behind each record.",
)
@click.option(
    "-K",
    "--key-delimiter",
    type=RawText(),
    metavar="TEXT",
    help="Print the key as well, with this text behind it.",
)
@click.option("-O", "--print-offset", is_flag=True, help="Print offsets before the values.")
@click.option("-Z", "--null", "show_null", is_flag=True, help="Print NULL for null, not nothing.")
@settings_option
@timeout_option
@quietly
def consume(
    topics: tuple[str, ...],
    *,
    bootstrap: str,
    client_settings: tuple[str, ...],
    timeout: float,
    count: int | None,
    follow: bool,
    exit_at_end: bool,
    group: str | None,
    **options: Any,
) -> None:
    """Print the records of topics: up to their end, or on and on with --follow.

    TOPIC is a name, a pattern such as 'orders-*', or a regular expression such as '^orders'.
    """
    if follow and exit_at_end:
        raise click.UsageError("--follow and --exit exclude each other")
    _check_options(options, group)
    if group == "":
        raise click.UsageError("name the group: its name is empty")
    wanted = _Wanted(list(topics), _pattern(topics))
    output = _output(options)
    source = _Source(bootstrap, client_settings, timeout)
    chosen = _chosen(options["isolation"], options["rack"])
    if group is None:
        _read(source, chosen, wanted, output, _span(options), count=count, follow=follow)
    else:
        settings = client_arguments(
            bootstrap,
            client_settings,
            owner=CONSUMER,
            **_membership(group, options["assignor"], options["instance_id"]),
            auto_offset_reset=_reset(options["offset"]),
        )
        settings.update(chosen)
        limits = (count, follow, not options["no_commit"])
        _read_as_member(source, settings, wanted, output, limits)


class _Wanted(NamedTuple):
    """Topics by name, or by a pattern."""

    names: list[str]
    pattern: re.Pattern[str] | None


class _Source(NamedTuple):
    """Cluster to read from, and the time-out of requests in seconds."""

    bootstrap: str
    client_settings: tuple[str, ...]
    timeout: float


def _read(
    source: _Source,
    chosen: dict[str, SettingValue],
    wanted: _Wanted,
    output: Output,
    span: _Span,
    *,
    count: int | None,
    follow: bool,
) -> None:
    """Read a range of records without a group."""
    from tarry.cli.reading import Limits, Reading
    from tarry.cli.status_line import Waiting
    from tarry.client import Consumer
    from tarry.client.errors import UnknownTopic

    names = (
        wanted.names
        if wanted.pattern is None
        else _found_topics(source, wanted.names, wanted.pattern)
    )
    settings = client_arguments(
        source.bootstrap,
        source.client_settings,
        owner=CONSUMER,
        auto_offset_reset="none",
        allow_auto_create_topics=False,
    )
    settings.update(chosen)
    with Consumer(settings) as consumer:
        consumer.on_wait = Waiting(source.bootstrap).look
        reading = Reading(consumer, names, output, source.timeout)
        try:
            reading.choose(span.partitions)
        except UnknownTopic as error:
            fail(_unknown_topic(source, names, error))
        reading.begin(span.ranges)
        reading.run(Limits(count, span.until_ms, follow))


def _unknown_topic(source: _Source, names: list[str], error: UnknownTopic) -> str:
    """Return the sentence about a topic that does not exist, with the name probably meant."""
    from tarry.cli.running import Cluster
    from tarry.cli.topic_choice import explained

    with Cluster(*source).admin() as admin:
        for name in names:
            better = explained(admin, error, name, source.timeout)
            if better is not error:
                return str(better)
    return str(error)


def _found_topics(source: _Source, names: list[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the topics that a pattern finds at this moment, but for the broker's own."""
    from tarry.cli.running import Cluster

    with Cluster(*source).admin() as admin:
        topics = admin.list_topics(source.timeout)
    found = [one.name for one in topics if not one.is_internal and pattern.search(one.name)]
    if not found:
        fail(f"no topic matches {' or '.join(map(repr, names))}")
    return sorted(found)


def _read_as_member(
    source: _Source,
    settings: dict[str, SettingValue],
    wanted: _Wanted,
    output: Output,
    limits: tuple[int | None, bool, bool],
) -> None:
    from tarry.cli.group_reading import GroupLimits, GroupReading
    from tarry.cli.status_line import Waiting
    from tarry.client import Consumer

    # At SIGTERM leave the group: otherwise the partitions wait for a session time-out.
    with orderly_sigterm(), Consumer(settings) as consumer:
        consumer.on_wait = Waiting(source.bootstrap).look
        reading = GroupReading(consumer, wanted.pattern or wanted.names, output, source.timeout)
        reading.run(GroupLimits(*limits))


def _membership(
    group: str, assignor: str | None, instance_id: str | None
) -> dict[str, SettingValue]:
    """Return the settings of a member for which the command commits, once records are written."""
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


# --- Options


def _chosen(isolation: str | None, rack: str | None) -> dict[str, SettingValue]:
    """Return the settings that options name; they win over the profile and over -X."""
    given: dict[str, SettingValue] = {}
    if isolation is not None:
        given["isolation.level"] = isolation
    if rack is not None:
        given["client.rack"] = rack
    return given


def _check_options(options: dict[str, Any], group: str | None) -> None:
    """Refuse options that exclude each other, so that none is ignored in silence."""
    shapes = [
        name
        for name, given in (
            ("--json", options["as_json"]),
            ("--csv", options["as_csv"]),
            ("--format", options["layout"] is not None),
        )
        if given
    ]
    if len(shapes) > 1:
        raise click.UsageError(f"{' and '.join(shapes)} exclude each other")
    if options["only"] and shapes and shapes != ["--json"]:
        raise click.UsageError(f"--only and {shapes[0]} exclude each other")
    shape = shapes[0] if shapes else "--only" if options["only"] else ""
    for name in ("delimiter", "key_delimiter", "print_offset"):
        is_of_lines = name == "delimiter" and shape == "--only"
        if shape and not is_of_lines and _is_given(name):
            raise click.UsageError(f"--{name.replace('_', '-')} and {shape} exclude each other")
    if options["as_json"] and options["show_null"]:
        raise click.UsageError("--null and --json exclude each other: JSON has a null of its own")
    if group is None:
        if options["assignor"] or options["instance_id"] or options["no_commit"]:
            raise click.UsageError(
                "--assignor, --instance-id and --no-commit are for members: give --group too"
            )
        if options["from_time"] and _is_given("offset"):
            raise click.UsageError(
                "--offset and --from exclude each other: both say where to begin"
            )
    elif options["from_time"] or options["to_time"] or options["partitions"]:
        raise click.UsageError(
            "a group says itself what its members read and from where: leave out --partition, "
            "--from and --to, and see tarry groups reset-offsets"
        )


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def _reset(offset: str) -> str:
    """Return where to begin in partitions for which the group has committed nothing."""
    known = {"beginning": "earliest", "earliest": "earliest", "end": "latest", "latest": "latest"}
    if offset not in known:
        raise click.UsageError(
            f"with --group, --offset is only for partitions without a commit: beginning or end, "
            f"not {offset}; tarry groups reset-offsets sets what is committed"
        )
    return known[offset]


def _pattern(topics: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return one regular expression for all names, if one of them is a pattern."""
    from tarry.cli.topic_choice import is_pattern, regex_of

    # A consumer subscribes to names or to one pattern.
    return regex_of(topics) if any(map(is_pattern, topics)) else None


class _Span(NamedTuple):
    """Span to read: which partitions, from where and until when."""

    partitions: list[int] | None
    ranges: Ranges
    until_ms: int | None


def _span(options: dict[str, Any]) -> _Span:
    from tarry.cli.places import TIME, BadPlace, Place, parse_partitions, parse_time_ms
    from tarry.cli.ranges import Range, Ranges, parse_ranges

    now_ms = time.time_ns() // 1_000_000
    from_time, to_time, chosen = options["from_time"], options["to_time"], options["partitions"]
    try:
        ranges = parse_ranges(options["offset"], now_ms)
        if from_time is not None:
            ranges = Ranges(Range(Place(TIME, parse_time_ms(from_time, now_ms))), {})
        until_ms = None if to_time is None else parse_time_ms(to_time, now_ms)
        partitions = None if chosen is None else parse_partitions(chosen)
    except BadPlace as error:
        raise click.UsageError(str(error)) from None
    if to_time is not None and any(one.end for one in (ranges.common, *ranges.single.values())):
        raise click.UsageError(
            "--to and an offset with .. exclude each other: both say where to end"
        )
    return _Span(partitions, ranges, until_ms)


def _output(options: dict[str, Any]) -> Output:
    """Return the output: where records go, and what turns them into bytes."""
    from tarry.cli.dress import dressed_for_files, dressed_for_terminals
    from tarry.cli.escapes import BadEscape
    from tarry.cli.formats import BadFormat, JsonRenderer
    from tarry.cli.packing import BadForm, parse_form
    from tarry.cli.reading import Output
    from tarry.cli.search import BadPattern, Search
    from tarry.cli.tables import has_colours

    null = b"NULL" if options["show_null"] else b""
    grep, grep_key = options["grep"], options["grep_key"]
    try:
        search = Search(grep, grep_key) if grep is not None or grep_key is not None else None
        forms = (parse_form(options["key_format"]), parse_form(options["value_format"]))
        dress = dressed_for_files(*forms)
        if options["as_json"]:
            return Output(sys.stdout.buffer, JsonRenderer(dress, options["only"]), search)
        if options["as_csv"]:
            from tarry.cli.records_csv import CsvWriter

            if sys.stdout.isatty():
                dress = dressed_for_terminals(*forms, (), has_colours=False)
            writer = CsvWriter(null, dress)
            return Output(sys.stdout.buffer, writer, search, writer.head)
        if sys.stdout.isatty():
            marks = search.patterns if search is not None else ()
            dress = dressed_for_terminals(*forms, marks, has_colours=has_colours())
        return Output(sys.stdout.buffer, _text_renderer(options, null, dress), search)
    except (BadFormat, BadEscape, BadForm, BadPattern) as error:
        raise click.UsageError(str(error)) from None


# The part of a record that --only names, as a letter of a format.
ONLY_LETTERS: Final = {"key": "%k", "value": "%s", "headers": "%h"}


def _text_renderer(options: dict[str, Any], null: bytes, dress: Dress) -> Renderer | PlainRenderer:
    from tarry.cli.escapes import unescape
    from tarry.cli.formats import PlainRenderer, compile_format

    if options["layout"] is not None:
        return compile_format(options["layout"], null, dress)
    if options["only"] is not None:
        # Escape the delimiter's own percent signs: they are no letters of the format.
        delimiter = options["delimiter"].replace("%", "%%")
        return compile_format(ONLY_LETTERS[options["only"]] + delimiter, null, dress)
    key_delimiter = options["key_delimiter"]
    return PlainRenderer(
        unescape(options["delimiter"]),
        None if key_delimiter is None else unescape(key_delimiter),
        with_offset=options["print_offset"],
        null=null,
        dress=dress,
    )
