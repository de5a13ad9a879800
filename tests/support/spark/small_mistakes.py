"""Mistakes that a small driver can have: the product's own functions, patched in its process.

Each is one that a death at the right step turns into a loss, a double or a driver that stands
still; without a death its driver is as good as one without a mistake.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tarry.records.batch import SEQUENCE_MAX
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import Manifest
from tarry.spark.writing import effects
from tarry.spark.writing.effects import LookedBack, Steps, ask
from tarry.spark.writing.plan import Plan, Share
from tarry.spark.writing.publishing import Publishing
from tarry.spark.writing.steps import SinkSteps


def manifest_first() -> None:
    """Let the manifest of a round count before its files are there."""
    commit: Any = ArchiveDirectory.commit

    def call(self: ArchiveDirectory, manifest: Manifest) -> object:
        staged = [self.path / file.staged for file in manifest.files]
        for path in staged:
            os.rename(path, f"{path}.unwritten")
        told = commit(self, manifest)
        for path in staged:
            os.rename(f"{path}.unwritten", path)
        return told

    patch(ArchiveDirectory, "commit", call)


def sequences_anew() -> None:
    """Send each batch under a producer id and a sequence of its own."""
    batch: Any = Publishing._batch

    def call(self: Publishing, plan: Plan, share: Share, ordinal: int) -> object:
        producer_id, epoch = self._publisher.new_producer_id()
        first = (share.first_sequence - share.sequence_of(ordinal)) & SEQUENCE_MAX
        changed = msgspec.structs.replace(
            share, producer_id=producer_id, producer_epoch=epoch, first_sequence=first
        )
        return batch(self, plan, changed, ordinal)

    patch(Publishing, "_batch", call)


def ends_late() -> None:
    """Look for a plan's batches from the end on that a log has now, not that of the plan.

    Brokers refuse what lies further back than the last batches of a producer, and answer to those
    as if they took them: nothing is doubled while they know the producer, and the driver stands
    still.
    """
    look_back: Any = Publishing._look_back

    def call(self: Publishing, effect: effects.LookBack) -> dict[Any, LookedBack]:
        return {
            place: looked._replace(seen=looked.seen._replace(batches=()))
            for place, looked in look_back(self, effect).items()
        }

    patch(Publishing, "_look_back", call)


def mark_first() -> None:
    """Mark a plan as done before it is published."""

    def call(self: SinkSteps, plan: Plan, is_fresh: bool) -> Steps[None]:
        yield from ask(effects.MarkDone(plan))
        yield from self.publish(plan, is_fresh)
        yield from ask(effects.RemoveFiles([file.name for file in plan.files]))

    patch(SinkSteps, "finish", call)


def patch(owner: Any, name: str, call: Callable[..., object]) -> None:
    setattr(owner, name, call)


ENDS_LATE: Final = "ends-late"

MISTAKES: Final[dict[str, Callable[[], None]]] = {
    "manifest-first": manifest_first,
    "sequences-anew": sequences_anew,
    ENDS_LATE: ends_late,
    "mark-first": mark_first,
}
