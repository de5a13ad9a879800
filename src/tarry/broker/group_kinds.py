"""Kinds of groups that a broker serves: a line for each, and no other place lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tarry.base.doors import Random
from tarry.broker.classic_routes import classic_routes
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.delayed.long_answers import LongAnswers
from tarry.broker.route import Route
from tarry.group.classic.kind import CLASSIC
from tarry.group.state import GroupKind, Kinds


class ServedKind(NamedTuple):
    """Kind of groups, and the function that makes the routes of its requests."""

    kind: GroupKind[Any]
    routes: Callable[[LongAnswers, GroupCoordinator, Random], list[Route[Any]]]


# The first kind is the default, which groups have that consist of offsets only.
SERVED: Final = (
    ServedKind(CLASSIC, classic_routes),
)  # fmt: skip


def served_kinds() -> Kinds:
    """Return the served kinds."""
    return Kinds([each.kind for each in SERVED])


def routes_of_kinds(
    long_answers: LongAnswers, groups: GroupCoordinator, random: Random
) -> list[Route[Any]]:
    """Return the routes of all kinds."""
    return [route for each in SERVED for route in each.routes(long_answers, groups, random)]
