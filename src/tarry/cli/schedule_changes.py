"""`tarry schedule cancel` and `move`: what waits does not come, or comes at another time."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from tarry.cli.formats import ISO, time_text
from tarry.cli.running import EXIT_FAILED, Cluster, cluster_options, json_option, quietly
from tarry.cli.schedule_times import due_time_ms
from tarry.cli.tables import complain, print_json, printable
from tarry.cli.units import OFFSET_MAX, PARTITION_MAX, whole_number

if TYPE_CHECKING:
    from tarry.client import Admin, ClientError, ScheduleOutcome


class ScheduleName(NamedTuple):
    """Name of a waiting entry: an id, or a partition and an s-offset."""

    schedule_id: str | None
    partition: int | None = None
    s_offset: int | None = None

    def __str__(self) -> str:
        if self.schedule_id is not None:
            return self.schedule_id
        return f"{self.partition}:{self.s_offset}"


def naming(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments that name waiting entries, by ids or places; the command gets `names`."""

    @click.argument("topic")
    @click.argument("ids", nargs=-1, metavar="[ID]...")
    @click.option(
        "--at",
        "places",
        multiple=True,
        metavar="PARTITION:S_OFFSET",
        help="Name it by its place, as list tells it; repeatable.",
    )
    @click.option(
        "-p",
        "--partition",
        type=click.IntRange(0, PARTITION_MAX),
        help="Look for the ids in this partition only.",
    )
    @functools.wraps(command)
    def run(
        ids: tuple[str, ...], places: tuple[str, ...], partition: int | None, **options: Any
    ) -> None:
        command(names=_names_of(ids, places, partition), **options)

    return run


def _names_of(
    ids: tuple[str, ...], places: tuple[str, ...], partition: int | None
) -> list[ScheduleName]:
    """Return the named entries; to name none is wrong usage."""
    names = [ScheduleName(one, partition) for one in ids]
    for place in places:
        index, colon, s_offset = place.partition(":")
        numbers = whole_number(index, PARTITION_MAX), whole_number(s_offset, OFFSET_MAX)
        if not colon or numbers[0] is None or numbers[1] is None:
            raise click.UsageError(
                f"invalid place {place!r}: write PARTITION:S_OFFSET, such as 0:1234"
            )
        names.append(ScheduleName(None, *numbers))
    if not names:
        raise click.UsageError("name what is meant: by its id, or by --at PARTITION:S_OFFSET")
    if any(name.schedule_id == "" for name in names):
        raise click.UsageError("an id is empty")
    return names


CANCEL_EXAMPLES: Final = """
\b
Examples:
  tarry schedule cancel reminders call-7 call-8
  tarry schedule cancel reminders --at 0:1234      what has no id, as list tells it

\b
The outcome of each is told when it can no more change: cancelled (it never comes),
already_released (it has come), unknown (nothing waits by that name).  The exit code
is 0 if all were cancelled.
"""


@click.command("cancel", epilog=CANCEL_EXAMPLES)
@naming
@cluster_options
@json_option
@quietly
def cancel_command(
    topic: str, *, cluster: Cluster, names: list[ScheduleName], as_json: bool
) -> None:
    """Cancel what waits: it never comes."""

    def cancel(admin: Admin, name: ScheduleName) -> ScheduleOutcome:
        return admin.cancel_scheduled(topic, **name._asdict(), timeout=cluster.timeout)

    _change(cluster, names, cancel, "cancelled", as_json=as_json)


MOVE_EXAMPLES: Final = """
\b
Examples:
  tarry schedule move reminders call-7 --to +2h
  tarry schedule move reminders --at 0:1234 --to 2026-12-24T18:00Z

\b
The outcome is moved, already_released or unknown.  What is moved has another place
in list from then on.  A time that has passed lets it come at once.
"""


@click.command("move", epilog=MOVE_EXAMPLES)
@click.option(
    "--to", "to_text", required=True, metavar="TIME", help="When it is due; +2h is in two hours."
)
@naming
@cluster_options
@json_option
@quietly
def move_command(
    topic: str, *, cluster: Cluster, to_text: str, names: list[ScheduleName], as_json: bool
) -> None:
    """Move what waits: it comes at another time."""
    due_ms = due_time_ms("--to", to_text)

    def move(admin: Admin, name: ScheduleName) -> ScheduleOutcome:
        return admin.move_scheduled(topic, due_ms, **name._asdict(), timeout=cluster.timeout)

    _change(
        cluster,
        names,
        move,
        "moved",
        done_text=f", due {time_text(due_ms, ISO)}",
        as_json=as_json,
    )


def _change(
    cluster: Cluster,
    names: list[ScheduleName],
    change: Callable[[Admin, ScheduleName], ScheduleOutcome],
    done: str,
    *,
    done_text: str = "",
    as_json: bool,
) -> None:
    """Change entries one after the other; print each outcome, and exit 1 unless all are done."""
    from tarry.client import BrokerError, SchedulingUnsupported, UnknownTopic

    rows: list[dict[str, object]] = []
    is_failed = False
    with cluster.admin() as admin:
        for name in names:
            try:
                outcome = change(admin, name)
            except (SchedulingUnsupported, UnknownTopic):
                raise
            except BrokerError as error:
                is_failed = True
                rows.append(_row(name, None, error))
                complain(f"{printable(str(name))}: {error}")
                continue
            is_failed = is_failed or outcome.outcome != done
            rows.append(_row(name, outcome, None))
            if not as_json:
                click.echo(f"{printable(str(name))}: {_text(outcome, done, done_text)}")
    if as_json:
        print_json(rows)
    if is_failed:
        sys.exit(EXIT_FAILED)


def _text(outcome: ScheduleOutcome, done: str, done_text: str) -> str:
    if outcome.outcome == done:
        return outcome.outcome + done_text
    if outcome.offset >= 0:
        return f"{outcome.outcome}, at offset {outcome.offset} of partition {outcome.partition}"
    if outcome.is_repeated:
        return f"{outcome.outcome} by now; an earlier try had no answer and may have done it"
    return outcome.outcome


def _row(
    name: ScheduleName, outcome: ScheduleOutcome | None, error: ClientError | None
) -> dict[str, object]:
    return {
        "name": str(name),
        "outcome": None if outcome is None else outcome.outcome,
        "partition": None if outcome is None else _known(outcome.partition),
        "s_offset": None if outcome is None else _known(outcome.s_offset),
        "offset": None if outcome is None else _known(outcome.offset),
        "repeated": None if outcome is None else outcome.is_repeated,
        "error": None if error is None else str(error),
    }


def _known(number: int) -> int | None:
    return None if number < 0 else number
