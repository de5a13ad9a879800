"""Events as a broker tells them, and what the jobs make of them."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.support.patience import PATIENCE_S

from tarry.base.wait_buckets import bucket_of
from tarry.broker.events.kinds import VERSION, Event
from tarry.spark.events.decoding import Tally, TimeSpan, decode_events
from tarry.spark.events.reading import EventsMissing, EventSource
from tarry.spark.jobs.rebalances import (
    RebalancesOptions,
    RebalanceSums,
    gather_rebalances,
)
from tarry.spark.jobs.waits import WaitsOptions, WaitSums, sum_waits

MINUTE_MS = 60_000
NOON_MS = 1_760_000_000_000 // MINUTE_MS * MINUTE_MS


def operations(
    at_ms: int, purgatory: str, subject: str, waits_ms: list[int], expired: int = 0
) -> Any:
    """What the broker tells of so many operations."""
    return {
        "kind": "operations",
        "v": VERSION,
        "at_ms": at_ms,
        "broker": 1,
        "interval_ms": 10_000,
        "purgatory": purgatory,
        "subject": subject,
        "completed": len(waits_ms),
        "expired": expired,
        "sum_ms": sum(waits_ms),
        "longest_ms": max(waits_ms),
        "buckets": {str(n): count for n, count in Counter(map(bucket_of, waits_ms)).items()},
    }


def summed(told: list[dict[str, Any]], span: TimeSpan | None = None, **options: Any) -> WaitSums:
    """The waits of these events."""
    tally = Tally()
    values = [json.dumps(each).encode() for each in told]
    decoded = decode_events(values, span or TimeSpan(), tally)
    return sum_waits(decoded, WaitsOptions(**options), tally)


def note(at_ms: int, what: str, group: str = "billing", **told: object) -> dict[str, object]:
    """What the broker tells of a group."""
    common = {"kind": "group", "v": VERSION, "at_ms": at_ms, "broker": 1}
    return {**common, "group": group, "what": what, "note": told}


def gathered(told: list[dict[str, object]], groups: tuple[str, ...] = ()) -> RebalanceSums:
    """The rebalances of these events."""
    tally = Tally()
    values = [json.dumps(each).encode() for each in told]
    decoded = decode_events(values, TimeSpan(), tally)
    return gather_rebalances(decoded, RebalancesOptions(groups), tally)


def wait_until_told(bootstrap: str, is_enough: Callable[[list[Event]], bool]) -> list[Event]:
    """Read a broker's event log until it has told enough."""
    source = EventSource({"bootstrap.servers": bootstrap})
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        # The topic comes with the first events.
        with contextlib.suppress(EventsMissing):
            events = list(source.events(Tally()))
            if is_enough(events):
                return events
    raise AssertionError("the broker has not told what the test waits for")
