"""Closed windows: up to where the stream of a stage has written all results that it ever will.

Spark writes the watermark that a micro-batch was run with into the checkpoint, and a second file
when the micro-batch is done.  Windows that end at that watermark or earlier are written, and rows
of theirs that come later are dropped.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.backfill.plan import BackfillRefused

OFFSETS: Final = "offsets"
COMMITS: Final = "commits"


class BatchMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Second line of a micro-batch's offsets, of which only this is needed."""

    batch_watermark_ms: int


def watermark_ms(checkpoint: Path) -> int | None:
    """Return the watermark of the newest micro-batch that is done; None before the first one."""
    numbers: list[int] = []
    with suppress(FileNotFoundError):
        numbers = [int(name) for name in os.listdir(checkpoint / COMMITS) if name.isdigit()]
    if not numbers:
        return None
    path = checkpoint / OFFSETS / str(max(numbers))
    try:
        return msgspec.json.decode(
            path.read_text(encoding="utf-8").split("\n")[1], type=BatchMetadata
        ).batch_watermark_ms
    except (OSError, IndexError, msgspec.MsgspecError) as error:
        raise BackfillRefused(
            f"{path} does not tell how far the stage has come: {error}. The checkpoint is that of "
            "another Spark, or damaged"
        ) from None
