"""The day of the example `examples/orders`: what it says of itself is what is in it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "orders"


@pytest.fixture
def make_day(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("sys.path", [str(EXAMPLE), *sys.path])
    return __import__("day").Day


def decoded(day: Any) -> list[dict[str, Any]]:
    found = []
    for event in day.events:
        try:
            found.append(json.loads(event.value))
        except ValueError:
            continue
    return found


def test_a_seed_makes_the_same_day_again(make_day: Any) -> None:
    assert make_day(3, 200).events == make_day(3, 200).events
    assert make_day(3, 200).events != make_day(4, 200).events


def test_the_truth_of_a_day_is_what_is_in_it(make_day: Any) -> None:
    day = make_day(11, 1_000)
    truth, events = day.truth, decoded(day)

    times = Counter(one["event_id"] for one in events)
    assert truth.events == len(day.events)
    assert truth.rejected == {
        "decode": len(day.events) - len(events),
        "positive": sum(one["amount"] <= 0 for one in events),
        "known": sum(one["country"] is None for one in events),
        "duplicate": sum(count - 1 for count in times.values()),
    }
    assert truth.clean == truth.events - sum(truth.rejected.values())


def test_unpaid_orders_are_those_without_a_payment_in_time(make_day: Any) -> None:
    day = make_day(5, 1_000)
    at_ms: dict[tuple[str, str], int] = {}
    for event in day.events:
        try:
            told = json.loads(event.value)
        except ValueError:
            continue
        if told["amount"] > 0 and told["country"] is not None:
            at_ms[told["order_id"], told["kind"]] = event.at_ms

    placed = [order for order, kind in at_ms if kind == "placed"]
    paid_late = [
        order
        for order in placed
        if at_ms.get((order, "paid"), 1 << 62) - at_ms[order, "placed"] > 30 * 60_000
    ]

    assert day.truth.unpaid == len(paid_late) > 0
