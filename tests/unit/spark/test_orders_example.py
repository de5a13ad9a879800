"""The example `examples/orders`: what its day says of itself, what its auditor finds, and what its
demo does before a Spark starts."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarry.testing import Tarry

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "orders"


@pytest.fixture
def make_day(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("sys.path", [str(EXAMPLE), *sys.path])
    return importlib.import_module("day").Day


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    monkeypatch.setattr("sys.path", [str(EXAMPLE), *sys.path])
    return importlib.import_module("audit")


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("sys.path", [str(EXAMPLE), *sys.path])
    return importlib.import_module("demo")


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


# --- The auditor


def is_good(record: Any) -> bool:
    try:
        told = json.loads(record.value)
    except ValueError:
        return False
    return told["amount"] > 0 and told["country"] is not None


class Sorted:
    """A day in `orders`, and what a pipeline without a mistake writes."""

    def __init__(self, audit: Any, demo: Any, broker: Tarry, day: Any) -> None:
        self._auditor = audit.Auditor(broker.bootstrap, Path("no-archive"))
        self._broker = broker
        demo.send(broker.bootstrap, day)
        self.sent = self._auditor.records("orders")
        self.clean: list[Any] = []
        # With the places that they say they came from.
        self.rejected: list[tuple[Any, str]] = []
        # Places in `rejected`, and what is in `clean`, of two that have the same value.
        self.twins: list[tuple[int, Any, str]] = []
        first: dict[bytes, tuple[Any, str]] = {}
        for partition, record in self.sent:
            place = f"orders/{partition}/{record.offset}"
            if is_good(record) and record.value not in first:
                first[record.value] = record, place
                self.clean.append(record)
                continue
            if is_good(record):
                self.twins.append((len(self.rejected), *first[record.value]))
            self.rejected.append((record, place))

    def found(self, audit: Any) -> dict[str, Any]:
        """Write both topics; return what the auditor finds in them."""
        for name in ("orders.clean", "orders.rejected"):
            self._broker.topic(name, partitions=2)
        with self._broker.producer() as producer:
            for one in self.clean:
                producer.send("orders.clean", one.value, key=one.key, headers=one.headers)
            for one, origin in self.rejected:
                headers = [*one.headers, ("x-origin", origin.encode())]
                producer.send("orders.rejected", one.value, key=one.key, headers=headers)
        clean, rejected = (
            [record for _, record in self._auditor.records(name)]
            for name in ("orders.clean", "orders.rejected")
        )
        checks = audit.each_once(self.sent, clean, rejected)
        return {one.sentence: one for one in checks if not one.is_well}


@pytest.fixture
def outcome(audit: Any, demo: Any, make_day: Any) -> Iterator[Sorted]:
    with Tarry({"log.retention.ms": "-1"}) as broker:
        yield Sorted(audit, demo, broker, make_day(3, 150))


def test_the_auditor_finds_nothing_where_each_record_is_there_once(
    audit: Any, outcome: Sorted
) -> None:
    assert outcome.found(audit) == {}


def test_the_auditor_finds_a_record_that_is_there_twice_for_an_equal_one_that_is_lost(
    audit: Any, outcome: Sorted
) -> None:
    index, doubled, its_place = outcome.twins[0]
    lost, lost_place = outcome.rejected[index]
    outcome.rejected[index] = doubled, its_place
    # The values balance.
    assert (lost.key, lost.value) == (doubled.key, doubled.value)

    (check,) = outcome.found(audit).values()

    assert check.sentence == "Each record is in orders.clean or in orders.rejected, once"
    assert check.found.endswith(f"; {lost_place} is lost; {its_place} is there 2 times")


def test_the_auditor_finds_a_rejected_record_with_the_origin_of_another(
    audit: Any, outcome: Sorted
) -> None:
    index, _, other_place = outcome.twins[0]
    record, place = outcome.rejected[index]
    outcome.rejected[index] = record, other_place

    (check,) = outcome.found(audit).values()

    assert check.found.endswith(f"; {place} says that it came from {other_place}")


# --- The demo, before a Spark starts


def test_a_machine_without_java_is_told_before_anything_is_made(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("sys.argv", ["demo.py", "--directory", str(tmp_path / "demo")])

    # An exit with a sentence has the status 1.
    with pytest.raises(SystemExit, match=r"^the demo cannot run: Spark needs Java.*set JAVA_HOME"):
        demo.main()

    assert not (tmp_path / "demo").exists()


def test_a_demo_that_did_not_end_is_no_obstacle_to_the_next_one(demo: Any, tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with pytest.raises(SystemExit, match="the pipeline ended"), demo.taken(directory):
        demo.fill(directory, 1_000)
        (directory / "data").mkdir()
        (directory / "data" / "log").write_text("records")
        raise SystemExit("the pipeline ended")

    with demo.taken(directory):
        assert [path.name for path in directory.iterdir()] == [demo.UNDER_WAY]


def refusal_of(demo: Any, directory: Path) -> str:
    with pytest.raises(SystemExit) as refused, demo.taken(directory):
        pass
    return str(refused.value)


def test_a_directory_is_never_removed_that_is_not_of_a_demo_that_did_not_end(
    demo: Any, tmp_path: Path
) -> None:
    ended, with_more, others = tmp_path / "ended", tmp_path / "more", tmp_path / "others"
    for directory in (ended, others):
        (directory / "lake").mkdir(parents=True)
    with pytest.raises(KeyboardInterrupt), demo.taken(with_more):
        (with_more / "mine").mkdir()
        raise KeyboardInterrupt
    (others / demo.UNDER_WAY).touch()
    link = tmp_path / "link"
    link.symlink_to(others)

    for directory in (ended, with_more, link):
        assert "is there already: remove it" in refusal_of(demo, directory)

    assert (ended / "lake").is_dir()
    assert (with_more / "mine").is_dir()
    assert (others / "lake").is_dir()


def test_a_demo_that_came_to_its_end_keeps_its_directory(demo: Any, tmp_path: Path) -> None:
    with demo.taken(tmp_path):
        (tmp_path / "lake").mkdir()

    assert "is there already: remove it" in refusal_of(demo, tmp_path)
    assert (tmp_path / "lake").is_dir()


def test_a_demo_that_still_runs_keeps_its_directory(demo: Any, tmp_path: Path) -> None:
    with demo.taken(tmp_path):
        (tmp_path / "lake").mkdir()

        assert "a demo runs in" in refusal_of(demo, tmp_path)
        assert (tmp_path / "lake").is_dir()


def test_a_broker_that_does_not_start_is_told_with_its_last_words(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tarry"
    program.write_text("#!/bin/sh\necho 'no room on the disk' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(demo, "TARRY", program)

    with (
        pytest.raises(SystemExit, match=r"status 3\); its last words:\n  no room on the disk$"),
        demo.broker(tmp_path),
    ):
        pass


def test_a_small_day_has_micro_batches_that_a_driver_can_die_between(
    demo: Any, tmp_path: Path
) -> None:
    demo.fill(tmp_path, 1_700)

    assert "rate = 426," in (tmp_path / "orders.toml").read_text()
