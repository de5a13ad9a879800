"""Records that wait in a real broker: the command `tarry schedule` and both faces of the client."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.client.faces import SyncFace as Face, make_face
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, BrokerError, NewTopic, Producer, UnknownTopic

HOUR_MS = 3_600_000
SCHEDULED = {"delay.enable": "true", "delay.source": "header"}


@pytest.fixture(params=["sync", "asyncio"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    made = make_face(request.param)
    yield made
    made.close()


class Scheduler:
    """Commands and clients on one topic of three partitions."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.broker = broker
        self.topic = topic
        self.tarry("topics", "create", topic, "-p", "3", *self._settings())

    def _settings(self) -> list[str]:
        return [word for item in SCHEDULED.items() for word in ("-c", "=".join(item))]

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tarry", *words, "-b", self.broker.address],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def tarry(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def listed(self, *words: str) -> list[dict[str, object]]:
        text = self.tarry("schedule", "list", self.topic, "--json", *words)
        return [json.loads(line) for line in text.splitlines()]

    def park(self, schedule_id: str, after: str, value: str = "v", partition: int = 0) -> None:
        due = int(time.time() * 1000) + int(after)
        with Producer(bootstrap_servers=self.broker.address) as producer:
            headers = {"x-deliver-at": b"%d" % due, "x-sched-id": schedule_id.encode()}
            producer.send_and_wait(self.topic, value.encode(), headers=headers, partition=partition)


@pytest.fixture
def scheduler(shared_broker: BrokerProcess, request: pytest.FixtureRequest) -> Scheduler:
    name = request.node.name.replace("[", "-").replace("]", "")
    return Scheduler(shared_broker, name[:200])


def test_what_waits_is_loaded_listed_shown_cancelled_and_moved(
    scheduler: Scheduler, tmp_path: Path
) -> None:
    file = tmp_path / "calls.csv"
    file.write_text("due,id,key,value\n+2h,a,anna,ring\n+3h,b,ben,ring\n+4h,,carl,ring\n")
    topic = scheduler.topic

    scheduler.tarry("schedule", "load", topic, str(file))
    ids = [entry["id"] for entry in scheduler.listed()]
    soon = scheduler.listed("--to", "+150m")
    shown = scheduler.tarry("schedule", "show", topic, "b")
    cancelled = scheduler.tarry("schedule", "cancel", topic, "a")
    moved = scheduler.tarry("schedule", "move", topic, "b", "--to", "+10h")
    (first, _) = scheduler.listed()
    place = f"{first['partition']}:{first['s_offset']}"
    by_place = scheduler.tarry("schedule", "cancel", topic, "--at", place)
    late = scheduler.run("schedule", "cancel", topic, "a")

    assert ids == ["a", "b", None]
    assert [entry["id"] for entry in soon] == ["a"]
    assert "ben" in shown and "ring" in shown
    assert cancelled == "a: cancelled\n"
    assert moved.startswith("b: moved, due 20")
    assert by_place == f"{place}: cancelled\n"
    assert (late.returncode, late.stdout) == (1, "a: unknown\n")
    assert [entry["id"] for entry in scheduler.listed()] == ["b"]


def test_what_recurs_is_listed_cancelled_and_not_moved(scheduler: Scheduler) -> None:
    topic = scheduler.topic
    scheduler.park("once", "3600000")
    headers = {"x-sched-cron": b"0 0 1 1 *", "x-sched-tz": b"Asia/Tokyo", "x-sched-id": b"yearly"}
    with Producer(bootstrap_servers=scheduler.broker.address) as producer:
        producer.send_and_wait(topic, b"v", headers=headers, partition=0)

    (once, yearly) = scheduler.listed()
    table = scheduler.tarry("schedule", "list", topic)
    shown = scheduler.tarry("schedule", "show", topic, "yearly")
    moved = scheduler.run("schedule", "move", topic, "yearly", "--to", "+1h")
    cancelled = scheduler.tarry("schedule", "cancel", topic, "yearly")

    assert (once["cron"], once["time_zone"]) == (None, None)
    assert (yearly["cron"], yearly["time_zone"]) == ("0 0 1 1 *", "Asia/Tokyo")
    assert "0 0 1 1 * Asia/Tokyo" in table and "0 0 1 1 * Asia/Tokyo" in shown
    assert moved.returncode != 0
    assert "is not moved" in moved.stderr
    assert cancelled == "yearly: cancelled\n"
    assert [entry["id"] for entry in scheduler.listed()] == ["once"]


def test_bad_lines_are_named_and_nothing_is_sent(scheduler: Scheduler) -> None:
    lines = '{"due": "+1h", "value": "x"}\n{"value": "x"}\n{"due": "soon", "value": "x"}\n'

    refused = scheduler.run("schedule", "load", scheduler.topic, "-", stdin=lines)
    before = scheduler.listed()
    forced = scheduler.run("schedule", "load", scheduler.topic, "-", "--skip-bad", stdin=lines)

    assert refused.returncode == forced.returncode == 1
    assert "line 2: due is missing" in refused.stderr
    assert "line 3: due: invalid time 'soon'" in refused.stderr
    assert before == []
    assert len(scheduler.listed()) == 1


def test_the_histogram_draws_how_much_comes_when(scheduler: Scheduler) -> None:
    lines = [{"due": f"+{hours}h", "value": "x"} for hours in (1, 1, 1, 5)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    scheduler.tarry("schedule", "load", scheduler.topic, "-", stdin=text)

    drawn = scheduler.tarry("schedule", "histogram", scheduler.topic).splitlines()
    told = json.loads(scheduler.tarry("schedule", "histogram", scheduler.topic, "--json"))

    assert sum(bucket["records"] for bucket in told) == 4
    assert max(line.count("█") for line in drawn) > 10
    assert len(drawn) == len(told)


def test_what_was_cancelled_stays_so_over_kill_9(broker: BrokerProcess) -> None:
    scheduler = Scheduler(broker, "killed")
    with Admin(bootstrap_servers=broker.address) as admin:
        scheduler.park("a", "5000")
        cancelled = admin.cancel_scheduled("killed", "a", partition=0)
        scheduler.park("b", "1000")
    broker.kill()
    broker.start()

    (line,) = scheduler.tarry("consume", "killed", "--follow", "-c", "1", "--json").splitlines()
    late = scheduler.run("schedule", "cancel", "killed", "b")

    assert cancelled.outcome == "cancelled"
    assert {"name": "x-sched-id", "value": "b"} in json.loads(line)["headers"]
    assert late.stdout.startswith("b: already_released")
    assert scheduler.listed() == []


@pytest.mark.parametrize("source", ["header", "timestamp"])
def test_rows_of_a_table_that_wait_come_once_over_kill_9(
    broker: BrokerProcess, source: str
) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'tarry[arrow]'")
    from tarry.client.arrow import ArrowProducer

    scheduler = Scheduler(broker, "killed")
    scheduler.tarry("topics", "alter", "killed", "-c", f"delay.source={source}")
    due_ms = int(time.time() * 1000) + 5_000
    count = 300
    at_ms = [None if number % 3 == 0 else due_ms + number % 7 for number in range(count)]
    table = pa.table({"value": [f"{number}" for number in range(count)], "deliver_at": at_ms})

    with ArrowProducer(bootstrap_servers=broker.address) as producer:
        receipt = producer.send_and_wait("killed", table)
    broker.kill()
    broker.start()
    text = scheduler.tarry("consume", "killed", "--follow", "-c", f"{count}", "--json")

    lines = [json.loads(line) for line in text.splitlines()]
    assert sorted(int(line["value"]) for line in lines) == [*range(count)]
    assert receipt.row_count == count
    parked = sum(batch.row_count for batch in receipt.batches if batch.is_parked)
    assert parked == count * 2 // 3
    assert time.time() * 1000 >= due_ms
    assert scheduler.listed() == []


def test_both_faces_list_pages_and_change(scheduler: Scheduler, face: Face) -> None:
    run = face.run
    admin = face.Admin(bootstrap_servers=scheduler.broker.address)
    now_ms = int(time.time() * 1000)
    for number in range(10):
        scheduler.park(f"id-{number}", str(HOUR_MS + number * 1_000), partition=number % 3)

    pages = []
    after = None
    while True:
        page = run(admin.scheduled(scheduler.topic, limit=4, after=after))
        pages.append([entry.schedule_id for entry in page.entries])
        after = page.next
        if after is None:
            break
    edges = [now_ms, now_ms + HOUR_MS // 2, now_ms + 2 * HOUR_MS]
    totals = run(admin.schedule_totals(scheduler.topic, edges=edges))
    (found,) = run(admin.find_scheduled(scheduler.topic, "id-4"))
    moved = run(admin.move_scheduled(scheduler.topic, now_ms + 5 * HOUR_MS, "id-4"))
    cancelled = run(admin.cancel_scheduled(scheduler.topic, partition=1, s_offset=moved.s_offset))
    unknown = run(admin.cancel_scheduled(scheduler.topic, "id-4"))
    with pytest.raises(UnknownTopic):
        run(admin.scheduled("nowhere"))
    run(admin.create_topics([NewTopic(f"{scheduler.topic}-plain", 1)]))
    with pytest.raises(BrokerError, match=r"delay\.enable"):
        run(admin.cancel_scheduled(f"{scheduler.topic}-plain", "a"))
    run(admin.close())

    assert [each for page in pages for each in page] == [b"id-%d" % number for number in range(10)]
    assert [bucket.record_count for bucket in totals.buckets] == [0, 10]
    assert found.records is not None
    assert [record.value for record in found.records] == [b"v"]
    outcomes = [each.outcome for each in (moved, cancelled, unknown)]
    assert outcomes == ["moved", "cancelled", "unknown"]


def test_a_topic_is_described_with_what_waits_and_what_became_of_it(scheduler: Scheduler) -> None:
    scheduler.park("soon", "200")
    scheduler.park("late", str(HOUR_MS), partition=1)
    scheduler.park("taken-back", str(HOUR_MS), partition=2)
    scheduler.tarry("schedule", "cancel", scheduler.topic, "taken-back")
    scheduler.tarry("consume", scheduler.topic, "--follow", "-c", "1")

    (told,) = json.loads(scheduler.tarry("topics", "describe", scheduler.topic, "--json"))
    text = scheduler.tarry("topics", "describe", scheduler.topic)

    scheduled = told["scheduled"]
    assert (scheduled["entries"], scheduled["records"], scheduled["damaged"]) == (1, 1, 0)
    counts = scheduled["counts"]
    assert (counts["parked"], counts["released"], counts["cancelled"]) == (3, 1, 1)
    assert counts["refused"] == 0
    assert counts["late_ms"]["p50"] == counts["late_ms"]["worst"]
    assert "waiting: 1 entry, 1 record" in text
    assert "3 parked, 1 released, 1 cancelled, 0 refused" in text
    assert "late by: p50" in text


def test_a_topic_without_delays_is_described_without_them(scheduler: Scheduler) -> None:
    scheduler.tarry("topics", "create", "described-plain")

    (told,) = json.loads(scheduler.tarry("topics", "describe", "described-plain", "--json"))

    assert told["scheduled"] is None
