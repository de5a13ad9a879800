"""Checkers of a whole history of groups, those first whose sentences explain most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.simulation.checkers.groups.generations import (
    check_assignments,
    check_generations,
    check_old_generations,
)
from tarry.simulation.checkers.groups.offsets import check_offsets
from tarry.simulation.checkers.groups.sessions import (
    check_commits_of_nobody,
    check_fencing,
    check_sessions,
)
from tarry.simulation.groups.history import GroupHistory

Checker = Callable[[GroupHistory], list[str]]

CHECKERS: Final[tuple[Checker, ...]] = (
    check_assignments,
    check_generations,
    check_old_generations,
    check_fencing,
    check_sessions,
    check_commits_of_nobody,
    check_offsets,
)


def check_groups(history: GroupHistory) -> list[str]:
    """Return a sentence for each violation in the groups of a run."""
    sentences: list[str] = []
    for check in CHECKERS:
        sentences += check(history)
    return sentences
