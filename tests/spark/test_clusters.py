"""The programs of the page about clusters: on a standalone cluster, and on Spark Connect."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.spark.conftest import what_is_missing
from tests.support.spark.audit import make_topic, values_of
from tests.support.spark.page_examples import programs_of

from tarry.client import Producer
from tarry.spark.archive.verify import verify
from tarry.testing import Tarry

PAGE = "spark-on-a-cluster.md"
RECORDS = 500
WORKERS = 2

PIPELINE = """\
name = "clustered"
checkpoint = "checkpoint"
source = { topics = ["clustered"] }
decode = { format = "json", schema = "event.json" }
deduplicate = { by = ["event"], within = "24h" }
clean = { topic = "clustered.clean", rejected = "clustered.rejected" }
archive = { path = "archive", topics = ["clustered", "clustered.clean"] }
[[aggregate]]
name = "hours"
window = "1h"
late = "1m"
values = { events = "count(*)" }
topic = "clustered.hours"
"""
SCHEMA = {"type": "object", "properties": {"event": {"type": "integer"}}, "required": ["event"]}
EVENTS, DOUBLED = 40, 8
# Events are of one hour; one of a later hour closes its window.
HOUR_MS = 3_600_000
BEGIN_MS = 490_000 * HOUR_MS


def program(broker: Tarry, directory: Path, number: int) -> Path:
    """Write a program of the page to a file, with the broker's address."""
    text = programs_of(PAGE)[number]
    path = directory / f"program-{number}.py"
    path.write_text(text.replace("127.0.0.1:9092", broker.bootstrap))
    return path


def fill(broker: Tarry, topic: str, count: int) -> list[bytes]:
    make_topic(broker.bootstrap, topic, 3)
    sent = [b"%d" % number for number in range(count)]
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in sent:
            producer.send(topic, value, key=value)
    return sent


def send_events(broker: Tarry) -> None:
    """Send events of an hour, some of them twice, and one of a later hour."""
    make_topic(broker.bootstrap, "clustered", 2)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in [*range(EVENTS), *range(DOUBLED)]:
            at_ms = BEGIN_MS + number * 1_000
            producer.send("clustered", event(number), key=b"%d" % number, timestamp=at_ms)
        producer.send("clustered", event(EVENTS), timestamp=BEGIN_MS + 3 * HOUR_MS)


def event(number: int) -> bytes:
    return b'{"event": %d}' % number


@pytest.fixture(autouse=True)
def _can_run() -> None:
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)


@pytest.mark.timeout(900)
def test_a_submitted_program_and_a_pipeline_do_their_work_on_two_workers(
    broker: Tarry, tmp_path: Path
) -> None:
    from tests.support.spark.standalone import run_pipeline_file, standalone_cluster, submit

    send_events(broker)
    (tmp_path / "event.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "orders.toml").write_text(PIPELINE)
    sent = fill(broker, "submitted-in", RECORDS)
    make_topic(broker.bootstrap, "submitted-out", 2)

    with standalone_cluster(tmp_path, WORKERS) as master:
        words = ("submitted-in", "submitted-out", str(tmp_path))
        told = json.loads(submit(tmp_path, master, program(broker, tmp_path, 0), *words))
        printed = run_pipeline_file(tmp_path, master, broker.bootstrap).splitlines()

    assert told == {"counted": RECORDS, "archived": RECORDS, "master": master}
    assert values_of(broker.bootstrap, "submitted-out") == Counter(sent)
    found = verify(tmp_path / "lake", {"bootstrap.servers": broker.bootstrap})
    assert (found.faults, found.rows, found.compared) == ([], RECORDS, RECORDS)

    # Both were applications of the cluster.
    assert len(list((tmp_path / "work").glob("app-*"))) == 2
    read, clean = EVENTS + DOUBLED + 1, EVENTS + 1
    whole = printed.pop()
    assert printed == [
        f"clean: {read} records, {DOUBLED} rejected ({DOUBLED} duplicate)",
        f"hours: {clean} records",
        f"archive: {read + clean} records",
    ]
    assert whole.startswith("whole ")
    assert f"; {read + clean} compared with the broker, 0 lost before" in whole
    events = Counter(map(event, range(clean)))
    assert values_of(broker.bootstrap, "clustered.clean") == events
    (hour,) = values_of(broker.bootstrap, "clustered.hours")
    assert json.loads(hour or b"")["events"] == EVENTS


@pytest.mark.timeout(600)
def test_a_topic_is_read_through_spark_connect(broker: Tarry, tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("Spark Connect needs grpcio")
    from tests.support.spark.standalone import environment

    sent = fill(broker, "connected", 20)

    done = subprocess.run(
        [sys.executable, str(program(broker, tmp_path, 1)), "connected"],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    assert sorted(json.loads(done.stdout)) == sorted(value.decode() for value in sent)
