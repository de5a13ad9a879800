"""`tarry timer`: look at the timing wheel; `picture` draws one as SVG."""

from __future__ import annotations

from typing import Final

import click

from tarry.cli.running import EXIT_FAILED, GuessingGroup, fail, quietly

DUE_IN_MS: Final = 445
# Longest time, a hundred years: the picture has no room for longer numbers.
TIME_MS_MAX: Final = 3_155_760_000_000

EXAMPLES: Final = """\b
Examples:
  tarry timer picture > cascade.svg
  tarry timer picture --deadline 3,17,445 -o wheel.svg
"""


class Times(click.ParamType[list[int]]):
    """`MS`, `A..B` or `A..B/STEP`, several with commas."""

    name = "MS,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        from tarry.cli.picture.steps import ENTRIES_MAX

        times_ms: list[int] = []
        for part in str(value).split(","):
            try:
                found = _range(part.strip())
            except ValueError:
                self.fail(
                    f"{part!r} is no time; write milliseconds: 445, or 10..500, or 10..500/7",
                    param,
                    ctx,
                )
            if not found:
                self.fail(f"{part!r} holds no time; write the smaller one first", param, ctx)
            if max(abs(found[0]), abs(found[-1])) > TIME_MS_MAX:
                self.fail(f"{part!r} is more than 100 years away", param, ctx)
            if len(times_ms) + len(found) > ENTRIES_MAX:
                self.fail(
                    f"more than the {ENTRIES_MAX:,} times that a picture has room for", param, ctx
                )
            times_ms.extend(found)
        return times_ms


def _range(part: str) -> range:
    """Return the times that a part of an option names."""
    span, slash, step = part.partition("/")
    first, dots, last = span.partition("..")
    if slash and (not dots or int(step) < 1):
        raise ValueError(part)
    start = int(first)
    stop = int(last) if dots else start
    return range(start, stop + 1, int(step) if slash else 1)


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def timer() -> None:
    """Draw timing wheels."""


PICTURE_EXAMPLES: Final = """\b
Examples:
  tarry timer picture > cascade.svg                       an entry due in 445 ms falls
  tarry timer picture -d 3,17,445 -o wheel.svg            three entries, before anything is due
  tarry timer picture -d 1..500/7 -a 100,200 -o busy.svg  many, and two steps in time
  tarry timer picture -d 45 --size 4 --cascade -o small.svg
"""


@timer.command("picture", epilog=PICTURE_EXAMPLES)
@click.option(
    "-d",
    "--deadline",
    "deadlines",
    type=Times(),
    multiple=True,
    help=f"When entries are due: 445, 10..500 or 10..500/7; else {DUE_IN_MS} ms from the start.",
)
@click.option(
    "--now", "now_ms", type=int, default=0, show_default=True, metavar="MS", help="The start."
)
@click.option(
    "-a",
    "--advance",
    "times",
    type=Times(),
    multiple=True,
    help="Advance to these times, in order, and draw each.",
)
@click.option(
    "--cascade", is_flag=True, help="Advance to every time at which a bucket is due, to the end."
)
@click.option(
    "--tick", "tick_ms", type=int, default=1, show_default=True, metavar="MS", help="Of level 0."
)
@click.option(
    "--size", type=int, default=20, show_default=True, metavar="COUNT", help="Buckets of a level."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Where the SVG goes; else stdout.",
)
@quietly
def picture(
    *,
    deadlines: tuple[list[int], ...],
    now_ms: int,
    times: tuple[list[int], ...],
    cascade: bool,
    tick_ms: int,
    size: int,
    output: str,
) -> None:
    """Draw a timing wheel, step by step, as SVG.

    A real wheel is made, entries are added, and it is advanced; the picture shows its levels as
    rings, the entries in their buckets, and the queue of buckets.  Without --deadline and
    --advance it is the cascade of one entry.
    """
    from tarry.cli.picture.page import draw
    from tarry.cli.picture.steps import ENTRIES_MAX, steps_of, wheel_of

    if times and cascade:
        raise click.UsageError("--advance and --cascade exclude each other")
    deadlines_ms = [deadline_ms for part in deadlines for deadline_ms in part]
    times_ms = [time_ms for part in times for time_ms in part]
    if len(deadlines_ms) > ENTRIES_MAX:
        raise click.UsageError(f"more than the {ENTRIES_MAX:,} entries that a picture has room for")
    if abs(now_ms) > TIME_MS_MAX:
        raise click.UsageError(f"--now {now_ms} is more than 100 years away")
    earlier = now_ms
    for time_ms in times_ms:
        if time_ms < earlier:
            raise click.UsageError(f"--advance {time_ms} comes after {earlier}; time goes forward")
        earlier = time_ms
    if not deadlines_ms:
        cascade = cascade or not times
        deadlines_ms = [now_ms + DUE_IN_MS]
    wheel = wheel_of(now_ms, tick_ms, size)
    _write(draw(steps_of(wheel, now_ms, deadlines_ms, None if cascade else times_ms)), output)


def _write(svg: str, output: str) -> None:
    if output == "-":
        click.echo(svg, nl=False)
        return
    try:
        with open(output, "w", encoding="utf-8", newline="\n") as file:
            file.write(svg)
    except OSError as error:
        fail(f"{output} cannot be written: {error.strerror}", EXIT_FAILED)
