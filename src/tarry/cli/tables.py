"""Output of commands: tables for people, JSON for programs.

A table wider than the terminal is printed as blocks, a line a field; into a pipe it is always a
table.  Colours are for terminals, and never where NO_COLOR is set (no-color.org).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns by width; those of numbers, or of none (`-`, `?`), stand to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [len(title) for title in titles]
    for row in cells:
        for place, cell in enumerate(row):
            widths[place] = max(widths[place], _width(cell))
    room = room_columns()
    if room is not None and sum(widths) + 2 * (len(widths) - 1) > room:
        _print_blocks(titles, cells)
        return
    is_number = [_is_of_numbers([row[place] for row in rows]) for place in range(len(titles))]
    for number, line in enumerate([list(titles), *cells]):
        aligned = [
            _padded(cell, widths[place], to_right=is_number[place])
            for place, cell in enumerate(line)
        ]
        text = "  ".join(aligned).rstrip()
        click.echo(text if number else strong(text))


def _print_blocks(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(len(title) for title in titles)
    for number, row in enumerate(rows):
        if number:
            click.echo()
        for title, cell in zip(titles, row, strict=True):
            if title or cell:
                click.echo(f"{strong(title.ljust(width))}  {cell}".rstrip())


def room_columns() -> int | None:
    """Return how wide a line may be, in columns; None where no terminal shows it."""
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _width(cell: str) -> int:
    return len(click.unstyle(cell)) if "\x1b" in cell else len(cell)


def _padded(cell: str, width: int, *, to_right: bool) -> str:
    gap = " " * (width - _width(cell))
    return gap + cell if to_right else cell + gap


def _is_of_numbers(column: Sequence[object]) -> bool:
    are_numbers = [isinstance(cell, int | SizeCell) for cell in column if cell not in ("-", "?")]
    return bool(are_numbers) and all(are_numbers)


class SizeCell(str):
    """A number with a unit, which stands to the right like numbers."""

    __slots__ = ()


# --- Colours


def has_colours() -> bool:
    """Return true if stdout is a terminal whose user has not asked for no colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def strong(text: str) -> str:
    """Show text as a title."""
    return click.style(text, bold=True) if has_colours() else text


def good(text: str) -> str:
    """Show text as what is in order."""
    return click.style(text, fg="green") if has_colours() else text


def bad(text: str) -> str:
    """Show text as what a person has to look at."""
    return click.style(text, fg="red", bold=True) if has_colours() else text


# --- JSON


def print_json(value: object) -> None:
    # Loaded here, because help and tables do not need it.
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(text.decode())


def print_json_line(value: object) -> None:
    """Print one of many objects, each on a line of its own."""
    import msgspec

    click.echo(msgspec.json.encode(value).decode())


def seconds_text(duration_ms: int) -> str:
    """`0.250 s`, `12.5 s`, `3 min 5 s`, `2 h 10 min`."""
    if duration_ms < 10_000:
        return f"{duration_ms / 1000:.3f} s"
    if duration_ms < 60_000:
        return f"{duration_ms / 1000:.1f} s"
    seconds = duration_ms // 1000
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds // 60 % 60} min"


def count_of(count: int, noun: str) -> str:
    """`1 topic`, `2,000 topics`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
