"""Advice: what the sink tells a query to do, in the words of a job that has no query."""

from __future__ import annotations

import re
from typing import Final

from tarry.spark.writing.plan import SinkInterrupted, SinkRefused

# What cannot be mended is begun anew.
ANEW: Final = re.compile(
    "begin (?:a|the) query with a checkpoint of its own|give this query a sinkLocation of its own"
)
AGAIN: Final = re.compile("tart the query again")
TWIN: Final = re.compile("another driver runs this query on the same checkpoint", re.IGNORECASE)
FILE_SYSTEM: Final = re.compile("give another directory as the option sinkLocation")
GOES_ON: Final = "it goes on where it stopped"


def stop_sentence(what: str, error: SinkRefused, anew: str) -> str:
    """Return why a job that writes through the sink stopped, and what to do.

    `anew` is how a user begins it anew.  That it goes on is said only of what may pass.
    """
    told = ANEW.sub(lambda _: anew, str(error))
    told = AGAIN.sub("tart the same command again", told)
    told = TWIN.sub(lambda found: f"{found[0][:14]} does this with the same state", told)
    told = FILE_SYSTEM.sub("its state must lie on such a file system", told)
    sentence = f"{what}: {told}"
    if isinstance(error, SinkInterrupted) and GOES_ON not in told:
        sentence += ". The same command goes on from there"
    return sentence
