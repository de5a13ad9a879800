"""Text of the command line that may be any bytes: keys, delimiters, patterns, contents of headers.

The system hands bytes that are no UTF-8 over as lone surrogates, and `os.fsencode` turns them
back into what was typed.
"""

from __future__ import annotations

import click


class RawText(click.ParamType[str]):
    """Text of options that is sent or compared as bytes; names are click's own text."""

    name = "TEXT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        return str(value)
