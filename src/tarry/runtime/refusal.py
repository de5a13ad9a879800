"""Refusal of a start: a sentence for the user, exit code 3, no traceback."""

from __future__ import annotations

from tarry.base.errors import TarryError


class StartRefused(TarryError):
    """Start refused because of the machine, not the command line; the text says what to do."""


def reason_of(error: OSError) -> str:
    """Return the system's text for an error, without numbers and paths."""
    return error.strerror or str(error)
