"""Checkers of a whole history, those first whose sentences explain most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.simulation.checkers.changes import check_deletions, check_growth
from tarry.simulation.checkers.epochs import check_epoch_ends, check_leader_epochs
from tarry.simulation.checkers.producers import check_duplicates, check_order, check_producer_ids
from tarry.simulation.checkers.records import (
    check_acknowledged,
    check_handed_out,
    check_reads,
    check_times,
)
from tarry.simulation.checkers.topics import check_topics
from tarry.simulation.checkers.watermarks import check_acknowledged_ends, check_watermarks
from tarry.simulation.clients.history import RunHistory

Checker = Callable[[RunHistory], list[str]]

CHECKERS: Final[tuple[Checker, ...]] = (
    check_reads,
    check_acknowledged,
    check_handed_out,
    check_duplicates,
    check_order,
    check_watermarks,
    check_acknowledged_ends,
    check_leader_epochs,
    check_epoch_ends,
    check_times,
    check_topics,
    check_producer_ids,
    check_deletions,
    check_growth,
)


def check_history(history: RunHistory) -> list[str]:
    """Return a sentence for each violation of a run; those that a client noticed come first."""
    sentences = list(history.violations)
    for check in CHECKERS:
        sentences += check(history)
    return sentences
