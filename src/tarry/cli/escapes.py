"""Escapes that delimiters and formats share, as kcat has them: `\\n`, `\\t`, `\\x1e`."""

from __future__ import annotations

import os
from typing import Final

SIMPLE: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class BadEscape(ValueError):
    """An escape that means nothing; the text says which."""


def unescape(text: str) -> bytes:
    """Return the bytes that a delimiter of the command line stands for."""
    pieces: list[bytes] = []
    position = 0
    while position < len(text):
        if text[position] == "\\":
            piece, position = read_escape(text, position)
        else:
            piece, position = os.fsencode(text[position]), position + 1
        pieces.append(piece)
    return b"".join(pieces)


def read_escape(text: str, position: int) -> tuple[bytes, int]:
    """Read the escape at `position`; returns it and the position behind it."""
    letter = text[position + 1 : position + 2]
    if letter in SIMPLE and letter:
        return SIMPLE[letter], position + 2
    digits = text[position + 2 : position + 4]
    if letter == "x" and len(digits) == 2:
        try:
            return bytes([int(digits, 16)]), position + 4
        except ValueError:
            pass
    raise BadEscape(
        f"unknown escape {text[position : position + 4]!r}; there are \\n \\t \\r \\0 \\\\ \\xNN"
    )
