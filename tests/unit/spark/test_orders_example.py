"""The example `examples/orders`: what its day says of itself, what its auditor finds, and what its
demo does before a Spark starts."""

from __future__ import annotations

import importlib
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
    return importlib.import_module("day").Day


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
