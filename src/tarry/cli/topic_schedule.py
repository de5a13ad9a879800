"""Scheduled records of a topic, as `tarry topics describe` shows them."""

from __future__ import annotations

from typing import Final

from tarry.cli.formats import ISO, time_text
from tarry.cli.schedule_times import sums_text
from tarry.client import Admin, ClientError, ConfigEntry, ScheduleCounts, ScheduleTotals

SETTING: Final = "delay.enable"

# Percentiles of lateness that are shown, by their names in JSON.
PERCENTILES: Final = (("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9))


class TopicSchedule:
    """Sums of one topic's scheduled records, or why they are not known."""

    def __init__(self, totals: ScheduleTotals | None, problem: str = "") -> None:
        self.totals = totals
        self.problem = problem

    def lines(self) -> list[str]:
        """Return the lines for a terminal."""
        totals = self.totals
        if totals is None:
            return [f"what waits is not known: {self.problem}"]
        nothing = "as far as is known, nothing waits" if totals.flaws else "nothing waits"
        lines = [f"waiting: {sums_text(totals)}" if totals.entry_count else nothing]
        if totals.damaged_count:
            lines.append(f"damaged and never released: {totals.damaged_count:,} entries")
        lines += totals.flaws
        counts = totals.counts
        if counts is None:
            return lines
        lines.append(
            f"since {time_text(counts.since_ms, ISO)}: {counts.parked_count:,} parked, "
            f"{counts.released_count:,} released, {counts.cancelled_count:,} cancelled, "
            f"{counts.refused_count:,} refused"
        )
        if counts.released_count:
            late = [f"{_name_of(name)} {counts.late_ms(share):,} ms" for name, share in PERCENTILES]
            lines.append(f"late by: {', '.join(late)}, worst {counts.longest_late_ms:,} ms")
        return lines

    def as_json(self) -> dict[str, object]:
        totals = self.totals
        if totals is None:
            return {"problem": self.problem}
        return {
            "entries": totals.entry_count,
            "records": totals.record_count,
            "bytes": totals.size,
            "damaged": totals.damaged_count,
            "flaws": list(totals.flaws),
            "furthest_due_ms": totals.furthest_due_ms if totals.furthest_due_ms >= 0 else None,
            "counts": None if totals.counts is None else _counts_json(totals.counts),
        }


def _name_of(name: str) -> str:
    return name.replace("_", ".")


def _counts_json(counts: ScheduleCounts) -> dict[str, object]:
    has_released = counts.released_count > 0
    return {
        "since_ms": counts.since_ms,
        "parked": counts.parked_count,
        "released": counts.released_count,
        "cancelled": counts.cancelled_count,
        "refused": counts.refused_count,
        "late_ms": {
            **{name: counts.late_ms(share) for name, share in PERCENTILES},
            "worst": counts.longest_late_ms,
        }
        if has_released
        else None,
    }


def schedule_of(
    admin: Admin, topic: str, configs: list[ConfigEntry], timeout: float
) -> TopicSchedule | None:
    """Ask what waits in a topic; None if it has never had scheduled records."""
    if not any(each.name == SETTING and not each.is_default for each in configs):
        return None
    try:
        return TopicSchedule(admin.schedule_totals(topic, timeout=timeout))
    except ClientError as error:
        return TopicSchedule(None, str(error))
