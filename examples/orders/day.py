"""A seeded day of orders, with everything that goes wrong in one.

Keys are skewed (a few customers order most), hours have rushes, some events are no JSON or break a
rule, some come twice, some come late, and some orders are never paid.  `Day.events` yields the
records in the order in which they are sent; `Day.truth` says what a pipeline has to find in them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

DAY_MS: Final = 24 * 3_600_000
BEGAN_MS: Final = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)

COUNTRIES: Final = ("DE", "FR", "NL", "PL", "SE")
# Share of the orders of each hour: a quiet night, a rush at noon and a larger one in the evening.
RUSH: Final = (1, 1, 1, 1, 1, 2, 4, 6, 7, 7, 8, 12, 14, 9, 7, 6, 6, 8, 12, 18, 16, 9, 4, 2)

NEVER_PAID: Final = 0.06
PAID_TOO_LATE: Final = 0.02
DOUBLED: Final = 0.03
BROKEN: Final = 0.01
FREE: Final = 0.01
NO_COUNTRY: Final = 0.01
LATE: Final = 0.02

WAIT_MS: Final = 30 * 60_000
LATE_MS_MAX: Final = 40 * 60_000

# Header of each record that is sent: its number in the day, which no other one has.
NUMBER: Final = "number"


@dataclass(frozen=True)
class Event:
    """Record to send: `sent_ms` orders the day, `at_ms` is its timestamp."""

    sent_ms: int
    at_ms: int
    key: bytes
    value: bytes


def headers_of(number: int) -> list[tuple[str, bytes]]:
    """Return the headers of the event with this number."""
    return [(NUMBER, b"%d" % number)]


@dataclass
class Truth:
    """Counts of what the day holds."""

    events: int = 0
    # By the rule that rejects them.
    rejected: dict[str, int] = field(default_factory=dict)
    orders: int = 0
    unpaid: int = 0
    late: int = 0

    @property
    def clean(self) -> int:
        return self.events - sum(self.rejected.values())

    def reject(self, rule: str) -> None:
        self.rejected[rule] = self.rejected.get(rule, 0) + 1


class Day:
    """Day of a seed; `orders` orders make about 2.9 events each."""

    def __init__(self, seed: int, orders: int) -> None:
        self._random = random.Random(seed)
        self.truth = Truth(orders=orders)
        self._number = 0
        self.events = sorted(self._made(orders), key=lambda one: one.sent_ms)
        self.truth.events = len(self.events)

    def _made(self, orders: int) -> Iterator[Event]:
        draw = self._random
        hours = draw.choices(range(24), RUSH, k=orders)
        for number, hour in enumerate(hours):
            placed_ms = BEGAN_MS + hour * 3_600_000 + draw.randrange(3_600_000)
            # Pareto: a few customers order most.
            customer = f"customer-{min(int(draw.paretovariate(1.1)), 5_000)}"
            yield from self._order(f"order-{number:06}", customer, placed_ms)

    def _order(self, order: str, customer: str, placed_ms: int) -> Iterator[Event]:
        draw = self._random
        country = draw.choice(COUNTRIES)
        cents = draw.randrange(500, 50_000)
        flaw = draw.random()
        if flaw < BROKEN:
            self.truth.reject("decode")
            value = b'{"event_id": "broken-%d", "order_id"' % draw.randrange(1 << 30)
            yield Event(placed_ms, placed_ms, customer.encode(), value)
            return
        if flaw < BROKEN + FREE:
            self.truth.reject("positive")
            yield self._event(order, "placed", customer, country, 0, placed_ms)
            return
        if flaw < BROKEN + FREE + NO_COUNTRY:
            self.truth.reject("known")
            yield self._event(order, "placed", customer, None, cents, placed_ms)
            return
        yield from self._sent(order, "placed", customer, country, cents, placed_ms)
        fate = draw.random()
        if fate < NEVER_PAID:
            self.truth.unpaid += 1
            return
        waited_ms = draw.randrange(5_000, 20 * 60_000)
        if fate < NEVER_PAID + PAID_TOO_LATE:
            waited_ms = WAIT_MS + draw.randrange(60_000, 3_600_000)
            self.truth.unpaid += 1
        yield from self._sent(order, "paid", customer, country, cents, placed_ms + waited_ms)
        shipped_ms = placed_ms + waited_ms + draw.randrange(3_600_000, 6 * 3_600_000)
        yield from self._sent(order, "shipped", customer, country, cents, shipped_ms)

    def _sent(
        self, order: str, kind: str, customer: str, country: str, cents: int, at_ms: int
    ) -> Iterator[Event]:
        """Yield an event: in time or late, once or twice."""
        draw = self._random
        event = self._event(order, kind, customer, country, cents, at_ms)
        if draw.random() < LATE:
            self.truth.late += 1
            late_ms = draw.randrange(60_000, LATE_MS_MAX)
            event = Event(at_ms + late_ms, at_ms, event.key, event.value)
        yield event
        if draw.random() < DOUBLED:
            self.truth.reject("duplicate")
            again_ms = event.sent_ms + draw.randrange(1, 600_000)
            yield Event(again_ms, event.at_ms, event.key, event.value)

    def _event(
        self, order: str, kind: str, customer: str, country: str | None, cents: int, at_ms: int
    ) -> Event:
        self._number += 1
        at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        told = {
            "event_id": f"event-{self._number:07}",
            "order_id": order,
            "kind": kind,
            "customer": customer,
            "country": country,
            "amount": cents / 100,
            "at": at.replace("+00:00", "Z"),
        }
        return Event(at_ms, at_ms, customer.encode(), json.dumps(told).encode())
