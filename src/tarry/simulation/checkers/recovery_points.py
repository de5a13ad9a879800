"""Checker of recovery points: finds the logs that a round of recovery points has to take.

Without recovery points retention frees nothing, deletions of records are never answered, and cuts
of followers wait.  A log that cannot be saved, since it is damaged or is being cut, is left out.
"""

from __future__ import annotations

from tarry.broker.broker import Broker


def due_recovery_points(broker: Broker) -> list[str]:
    """Return the directories of the logs that wait for a round of recovery points."""
    points = broker.logs.recovery_points
    now_ms = broker.this_turn.now_ms
    return [
        log.directory
        for log in points.logs.values()
        if log.flaw_offset < 0 and not log.cut.has_begun and points.is_due(log, now_ms)
    ]
