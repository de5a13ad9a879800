"""Findings of a log's recovery."""

from __future__ import annotations

from tarry.log.log import Log


def has_found_nothing(log: Log) -> bool:
    """True if the last opening of a log read nothing again, cut nothing off and found no damage."""
    report = log.recovery_report
    return (report.scanned_bytes, report.torn_bytes, report.flaw_reason) == (0, 0, "")
