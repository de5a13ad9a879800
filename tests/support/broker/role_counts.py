"""RoleCounts: a whole part that reacts to roles, which only the tests know.

It counts the partitions that this broker has begun to lead and those that it has given up.  All
that such a part needs is here; the line for the list of services is `serve_role_counts`.
"""

from __future__ import annotations

from typing import Any

from tarry.base.partition_row import PartitionRow
from tarry.broker.broker import Broker
from tarry.broker.part import Part
from tarry.broker.route import Route
from tarry.partition.leadership import Leadership


class RoleCounts(Part):
    """Counts of roles taken and given up, by topic."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}
        self.given_up: dict[str, int] = {}

    def on_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        if leadership.is_leader and not was_leader:
            self.taken[leadership.topic] = self.taken.get(leadership.topic, 0) + 1
        elif was_leader and not leadership.is_leader:
            self.given_up[leadership.topic] = self.given_up.get(leadership.topic, 0) + 1


def serve_role_counts(counts: RoleCounts, broker: Broker) -> list[Route[Any]]:
    """Let a broker count roles; no request asks for them."""
    broker.parts.add(counts)
    return []
