"""Calls that end when their time is over, and say what was wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.patience import PATIENCE_S

from tarry.client import ClientError


def error_when_late(
    ask: Callable[[float], object], words: str, first_s: float
) -> ClientError | None:
    """Return the error of a call whose time is over, in seconds from `first_s` on.

    On a busy machine a short time is over before the call has learnt anything: while its error
    lacks the words, it has a longer time.
    """
    found: ClientError | None = None
    time_s = first_s
    while time_s < PATIENCE_S and words not in str(found):
        found = None
        try:
            ask(time_s)
        except ClientError as error:
            found = error
        time_s *= 4
    return found
