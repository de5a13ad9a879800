"""Refusal of a start: a sentence for the user, exit code 3, no traceback."""

from __future__ import annotations

from tarry.base.errors import TarryError


class StartRefused(TarryError):
    """The machine, not the command line, is in the way; the text says what to do."""


def reason_of(error: OSError) -> str:
    """Return what the system says, without numbers and paths."""
    return error.strerror or str(error)
