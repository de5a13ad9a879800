"""Outcomes of several things that a command asked for: a line each, one exit code for all."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from tarry.cli.running import EXIT_FAILED
from tarry.cli.tables import complain, print_json, printable

if TYPE_CHECKING:
    from tarry.client import ClientError

# Name, error or None, and the sentence to print if there is no error.
Outcome = tuple[str, "ClientError | None", str]


def print_outcomes(
    what: str,
    outcomes: Sequence[Outcome],
    *,
    forgiven: Mapping[int, str] | None = None,
    as_json: bool = False,
) -> None:
    """Print one line for each; exit 1 if one of them failed.  `forgiven` has what is said in place
    of an error that is none here.
    """
    is_failed = False
    rows: list[dict[str, object]] = []
    for name, error, done in outcomes:
        left = (forgiven or {}).get(_code_of(error))
        rows.append(
            {what: name, "done": error is None, "error": None if error is None else str(error)}
        )
        if error is not None and left is None:
            is_failed = True
            sentence = str(error)
            complain(sentence if name in sentence else f"{name}: {sentence}")
        elif not as_json:
            click.echo(f"{printable(name)}: {done if error is None else left}")
    if as_json:
        print_json(rows)
    if is_failed:
        sys.exit(EXIT_FAILED)


def _code_of(error: ClientError | None) -> int:
    from tarry.base.errors import NONE
    from tarry.client.errors import BrokerError

    return error.code if isinstance(error, BrokerError) else NONE
