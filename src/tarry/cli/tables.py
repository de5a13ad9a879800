"""Output of commands: tables for people, JSON for programs.

A table wider than the terminal is printed as blocks, a line a field; into a pipe it is always a
table.  Colours are for terminals, and never where NO_COLOR is set (no-color.org).

Names, settings and what a broker says may hold what a terminal would obey: it can clear the screen,
set its title or hide a line.  A terminal is shown escapes instead; a pipe gets the text as it is.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Final

import click


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns of fitting widths; numbers, and `-` or `?` for none, are aligned right."""
    cells = [[_shown(cell) for cell in row] for row in rows]
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


def _shown(cell: object) -> str:
    return cell if isinstance(cell, StyledCell) else printable(str(cell))


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


# --- What a terminal would obey

# Control characters, those beyond ASCII too, and what turns the direction of a line.
_OBEYED: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Control characters that are escaped in a sentence, which may have tabs and newlines.
_OBEYED_IN_LINES: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return a word with escapes for what a terminal would obey, where stdout is one."""
    return escaped(text) if sys.stdout.isatty() else text


def escaped(text: str) -> str:
    """Return text of one line with escapes for what a terminal would obey."""
    return _OBEYED.sub(_escape, text)


def printable_path(path: str) -> str:
    """Make a path printable; it may be any bytes."""
    return printable(path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def complain(sentence: str) -> None:
    """Say on stderr what is wrong, with escapes for what a terminal would obey."""
    if sys.stderr.isatty():
        sentence = _OBEYED_IN_LINES.sub(_escape, sentence)
    click.echo(f"tarry: {sentence}", err=True)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


# --- Colours


class StyledCell(str):
    """A cell with colours of our own, and with escapes for all other control characters."""

    __slots__ = ()


def has_colours() -> bool:
    """Return true if stdout is a terminal whose user has not asked for no colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def strong(text: str) -> str:
    """Show text as a title."""
    return _styled(text, bold=True)


def good(text: str) -> str:
    """Show text as what is in order."""
    return _styled(text, colour="green")


def bad(text: str) -> str:
    """Show text as what a person has to look at."""
    return _styled(text, colour="red", bold=True)


def _styled(text: str, *, colour: str | None = None, bold: bool | None = None) -> str:
    text = printable(text)
    return StyledCell(click.style(text, fg=colour, bold=bold)) if has_colours() else text


# --- JSON


def print_json(value: object) -> None:
    # Import it here: help and tables do not need it.
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
