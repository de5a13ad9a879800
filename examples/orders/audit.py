"""Auditor of the demo: a plain consumer and pyarrow, and none of the pipeline's code.

Each check is a sentence and what was found; a day is well when all of them hold.  The demo sends
each record with a number in its headers, which the pipeline keeps: so each offset of `orders` is
accounted for, also beside another one whose record has the same value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset
from day import NUMBER, WAIT_MS, Truth

from tarry.client import Consumer

# Length of a window, and how late its events may come; an hour more for the last micro-batch.
OPEN_AT_THE_END: Final = timedelta(hours=1 + 2 + 1)
# How late events of a wait may come, and a minute more.
LATE_MS: Final = 61 * 60_000

# Header of a rejected record: where it came from, as `orders/3/1200`.
ORIGIN: Final = "x-origin"
# Offsets that a check names; the others are counted.
NAMED_MAX: Final = 5


@dataclass(frozen=True)
class Check:
    """Sentence, what it counted, and whether it holds."""

    sentence: str
    found: str
    is_well: bool


def header(record: Any, name: str) -> str:
    """Return a header of a record; "" if it has none of this name."""
    return (dict(record.headers or ()).get(name) or b"").decode()


def each_once(
    sent: list[tuple[int, Any]], clean: list[Any], rejected: list[Any]
) -> Iterator[Check]:
    """Account for each offset of `orders`: it is in one of the two topics, once, as it was sent."""
    places = {
        header(record, NUMBER): f"orders/{partition}/{record.offset}" for partition, record in sent
    }
    came_out = Counter(header(record, NUMBER) for record in [*clean, *rejected])
    flaws = [f"{place} is lost" for number, place in places.items() if not came_out[number]]
    flaws += [
        f"{places.get(number, 'a record that nobody sent')} is there {count} times"
        for number, count in came_out.items()
        if count != (number in places)
    ]
    yield Check(
        "Each record is in orders.clean or in orders.rejected, once",
        f"{len(sent)} in, {len(clean)} clean + {len(rejected)} rejected{_named(flaws)}",
        not flaws and len(places) == len(sent),
    )
    as_sent = {header(record, NUMBER): (record.key, record.value) for _, record in sent}
    flaws = [
        f"{places.get(number)} is there with another key or value"
        for number, record in ((header(one, NUMBER), one) for one in [*clean, *rejected])
        if as_sent.get(number) != (record.key, record.value)
    ]
    flaws += [
        f"{places.get(header(record, NUMBER))} says that it came from {header(record, ORIGIN)}"
        for record in rejected
        if places.get(header(record, NUMBER)) != header(record, ORIGIN)
    ]
    yield Check(
        "Each is as it was sent, and a rejected one says where it came from",
        f"{len(rejected)} origins{_named(flaws)}",
        not flaws,
    )
    events = Counter(json.loads(record.value)["event_id"] for record in clean)
    yield Check(
        "No clean event comes twice",
        f"{len(events)} events, {len(clean)} records",
        len(events) == len(clean),
    )


def _named(flaws: list[str]) -> str:
    more = [f"{len(flaws) - NAMED_MAX} more"] if len(flaws) > NAMED_MAX else []
    return "".join(f"; {one}" for one in [*flaws[:NAMED_MAX], *more])


class Auditor:
    """Auditor of one cluster and one archive."""

    def __init__(self, bootstrap: str, archive: Path) -> None:
        self._bootstrap = bootstrap
        self._archive = archive

    def records(self, topic: str) -> list[tuple[int, Any]]:
        """Return all records of a topic, each with its partition."""
        with Consumer(bootstrap_servers=self._bootstrap, auto_offset_reset="earliest") as consumer:
            places = [(topic, index) for index in consumer.partitions_of(topic)]
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            found: list[tuple[int, Any]] = []
            while any(consumer.position(*place) < end for place, end in ends.items()):
                for group in consumer.poll(1.0):
                    found.extend((group.partition, record) for record in group.records)
            return found

    def checks(self, truth: Truth) -> Iterator[Check]:
        """Yield what holds and what does not."""
        sent = self.records("orders")
        good = self.records("orders.clean")
        clean = [record for _, record in good]
        rejected = [record for _, record in self.records("orders.rejected")]
        yield from each_once(sent, clean, rejected)
        yield self._rules(rejected, truth)
        yield self._archived("orders", sent)
        yield self._archived("orders.clean", good)
        yield self._revenue(clean)
        yield self._unpaid(clean)

    def _rules(self, rejected: list[Any], truth: Truth) -> Check:
        rules = Counter(dict(record.headers)["x-error-rule"].decode() for record in rejected)
        return Check(
            "Each rule rejects what breaks it",
            ", ".join(f"{rule} {count}" for rule, count in sorted(rules.items())),
            dict(rules) == truth.rejected,
        )

    def _archived(self, topic: str, records: list[tuple[int, Any]]) -> Check:
        table: Any = pyarrow.dataset.dataset(
            str(self._archive), partitioning="hive", exclude_invalid_files=False
        ).to_table(
            columns=["partition", "offset"],
            filter=pyarrow.dataset.field("topic") == topic,
        )
        kept = Counter(
            zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
        )
        there = Counter((partition, record.offset) for partition, record in records)
        return Check(
            f"The archive has each record of {topic}, once",
            f"{sum(kept.values())} rows, {len(records)} records",
            kept == there,
        )

    def _newest(self, topic: str, key: Callable[[Any], bytes]) -> dict[bytes, Any]:
        """Return the newest result of each key."""
        return {key(record): json.loads(record.value) for _, record in self.records(topic)}

    def _revenue(self, clean: list[Any]) -> Check:
        """Compare the windows that are over with those that are computed in one go."""
        expected: Counter[tuple[str, str]] = Counter()
        for record in clean:
            event = json.loads(record.value)
            expected[event["at"][:13], event["country"]] += round(event["amount"] * 100)
        results = self._newest("orders.revenue", lambda record: record.key)
        found = Counter(
            {
                (one["start"][:13].replace(" ", "T"), one["country"]): round(one["revenue"] * 100)
                for one in results.values()
            }
        )
        # A window is told once nothing of it can come any more: the last ones are open.
        newest = max(json.loads(record.value)["at"] for record in clean)
        ends = datetime.fromisoformat(newest) - OPEN_AT_THE_END
        due = {place for place in expected if datetime.fromisoformat(f"{place[0]}:00+00:00") < ends}
        return Check(
            "The revenue of each hour and country is the one computed in one go",
            f"{len(found)} windows of {len(expected)}, {sum(found.values()) / 100:,.2f} in all",
            due <= set(found) and all(expected[place] == found[place] for place in found),
        )

    def _unpaid(self, clean: list[Any]) -> Check:
        """Compare the waits that expired with those that are computed in one go."""
        placed, paid = {}, {}
        for record in clean:
            event = json.loads(record.value)
            times = {"placed": placed, "paid": paid}.get(event["kind"])
            if times is not None:
                times[event["order_id"]] = record.timestamp
        late = {
            order
            for order, began_ms in placed.items()
            if order not in paid or paid[order] - began_ms > WAIT_MS
        }
        outcomes = self._newest("orders.unpaid", lambda record: record.key)
        expired = {one["key"] for one in outcomes.values() if one["outcome"] == "expired"}
        # A wait ends once nothing of it can come any more: those of the last events are open.
        newest_ms = max([*placed.values(), *paid.values()])
        due = {order for order in late if placed[order] + WAIT_MS < newest_ms - LATE_MS}
        return Check(
            "Each order that was not paid in 30 minutes is told of, and no other",
            f"{len(expired)} told, {len(late)} in all",
            due <= expired <= late,
        )
