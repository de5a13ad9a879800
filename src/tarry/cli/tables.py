"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns by width; those that hold only numbers stand to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [len(title) for title in titles]
    for row in cells:
        for place, cell in enumerate(row):
            widths[place] = max(widths[place], len(cell))
    is_number = [
        bool(rows) and all(isinstance(row[place], int) for row in rows)
        for place in range(len(titles))
    ]
    for line in [list(titles), *cells]:
        aligned = [
            cell.rjust(widths[place]) if is_number[place] else cell.ljust(widths[place])
            for place, cell in enumerate(line)
        ]
        click.echo("  ".join(aligned).rstrip())


def print_json(value: object) -> None:
    # Loaded here, because help and tables do not need it.
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(text.decode())


def count_of(count: int, noun: str) -> str:
    """`1 topic`, `2,000 topics`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
