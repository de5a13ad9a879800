"""Refusal of a step: what was given cannot become a step, said before anything runs."""

from __future__ import annotations

from tarry.spark.options import OptionRefused, OptionTexts


class StepRefused(OptionRefused):
    """Step that cannot be made as it was asked for."""


def duration_ms(name: str, text: str) -> int:
    """Return a time such as `24h` in milliseconds.  Raises StepRefused with the name."""
    try:
        found = OptionTexts({name: text}).duration_ms(name, 0)
    except OptionRefused as refusal:
        raise StepRefused(str(refusal)) from None
    if found <= 0:
        raise StepRefused(f"{name}={text!r:.60} must be longer than nothing, such as 30s or 24h")
    return found
