"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns by width; those of numbers, or of none (`-`), stand to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [len(title) for title in titles]
    for row in cells:
        for place, cell in enumerate(row):
            widths[place] = max(widths[place], len(cell))
    is_number = [_is_of_numbers([row[place] for row in rows]) for place in range(len(titles))]
    for line in [list(titles), *cells]:
        aligned = [
            cell.rjust(widths[place]) if is_number[place] else cell.ljust(widths[place])
            for place, cell in enumerate(line)
        ]
        click.echo("  ".join(aligned).rstrip())


def _is_of_numbers(column: Sequence[object]) -> bool:
    are_numbers = [isinstance(cell, int) for cell in column if cell != "-"]
    return bool(are_numbers) and all(are_numbers)


def print_json(value: object) -> None:
    # Loaded here, because help and tables do not need it.
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(text.decode())


def print_json_line(value: object) -> None:
    """One of many, each on a line of its own."""
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
