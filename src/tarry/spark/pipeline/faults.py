"""Faults of a stage: a sentence for each, and whether another start can help."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Names of exceptions that Spark tells as text, of this package and of the system's.
TOLD: Final = re.compile(
    r"(?:^|[\s.:])(DataLost|SinkRefused|OptionRefused|StepRefused|ArchiveRefused|InvalidSetting)"
    r": (.*?)(?=\n|$)"
)
# The last line of a traceback.
RAISED: Final = re.compile(
    r"^(?:[\w.]+\.)?([A-Z]\w+(?:Error|Exception|Lost|Refused|Topic)): (.+)$", re.M
)
NO_ROOM: Final = re.compile(r"No space left on device|Disk quota exceeded")

HOPELESS: Final = ("DataLost", "OptionRefused", "StepRefused", "ArchiveRefused", "InvalidSetting")


class Fault(NamedTuple):
    """Fault of a stage; a hopeless one is the same after another start."""

    sentence: str
    is_hopeless: bool = False


class StageFailed(Exception):
    """A stage came to an end that no other start mends; the text says which, and what to do."""


def fault_of(error: BaseException) -> Fault:
    """Return the sentence of what ended a stage."""
    told = str(error)
    found = TOLD.findall(told)
    if found:
        name, sentence = found[-1]
        return Fault(_ended(sentence), name in HOPELESS or name == "SinkRefused")
    return Fault(_ended(told.strip().splitlines()[0] if told.strip() else type(error).__name__))


def _ended(sentence: str) -> str:
    """Return a sentence with its full stop."""
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."
