"""The Spark that `tarry spark run` starts by itself, where nothing is set for Spark."""

from __future__ import annotations

import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.conftest import what_is_missing
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.spark.audit import make_topic, values_of

from tarry.client import Producer
from tarry.spark.archive.verify import verify

TOPIC = "session-in"
CLEAN = f"{TOPIC}.clean"
FIRST, LAST = range(60), range(60, 80)
RECORDS = len(FIRST) + len(LAST)

# The broker is away for longer than a client waits; a micro-batch has 20 records.
FILE = f"""\
name = "session"
checkpoint = "checkpoint"
every = "200ms"
settings = {{ "default.api.timeout.ms" = "5000", "request.timeout.ms" = "4000" }}
source = {{ topics = ["{TOPIC}"], rate = 100 }}
decode = {{ format = "json", schema = "schema.json" }}
check = {{ even = "number % 2 = 0" }}
clean = {{ topic = "{CLEAN}", rejected = "{TOPIC}.rejected" }}
archive = {{ path = "archive", topics = ["{TOPIC}"], every = "200ms" }}
"""
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

STAGES = ("clean", "archive")
METRICS = re.compile(r"metrics: http://127\.0\.0\.1:\d+/metrics")
RESTART = re.compile(r"tarry: stage (clean|archive) ended: .+ It starts again in [\d.]+ s")
# Lines of Spark's own log, and how it begins where nothing keeps it quiet.
OF_SPARK = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d |Using Spark's default log4j|Setting default log"
)
RESTARTS = r"(, \d+ restarts?)?"
SUMS = (
    re.compile(rf"archive: {RECORDS} records{RESTARTS}"),
    re.compile(
        rf"clean: {RECORDS} records, {RECORDS // 2} rejected \({RECORDS // 2} even\){RESTARTS}"
    ),
)


def value_of(number: int) -> bytes:
    return b'{"number": %d}' % number


@pytest.fixture
def killed_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    directory = tmp_path / "broker"
    directory.mkdir()
    broker = BrokerProcess(directory)
    broker.start()
    yield broker
    broker.close()


def send(broker: BrokerProcess, numbers: range) -> None:
    with Producer(bootstrap_servers=broker.address) as producer:
        for number in numbers:
            producer.send(TOPIC, value_of(number))


def counter(text: str, name: str, stage: str) -> int:
    found = re.search(
        rf'^tarry_pipeline_{name}_total{{pipeline="session",.*stage="{stage}"}} (.+)$', text, re.M
    )
    return 0 if found is None else round(float(found[1]))


@pytest.mark.timeout(900)
def test_a_pipeline_goes_on_behind_a_broker_that_was_killed_until_a_signal_stops_it(
    tmp_path: Path, killed_broker: BrokerProcess
) -> None:
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    from tests.support.spark.command import SparkCommand, bare_environment

    broker = killed_broker
    make_topic(broker.address, TOPIC, 2)
    send(broker, FIRST)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "session.toml").write_text(FILE)
    environment = {**bare_environment(tmp_path), "TARRY_BOOTSTRAP_SERVERS": broker.address}
    words = ("session.toml", "--metrics", "127.0.0.1:0", "--progress", "-", "--restarts", "20")
    command = SparkCommand(tmp_path, environment, "run", *words)

    def told(pattern: re.Pattern[str]) -> str:
        """The first line on stderr that a pattern fits."""
        assert not command.has_ended(), command.told
        return next((line for line in command.told if pattern.fullmatch(line)), "")

    def read() -> list[int]:
        """How many records each stage has told of, line by line."""
        lines = [json.loads(line) for line in command.printed if line.startswith("{")]
        return [
            sum(line["records"] for line in lines if line["stage"] == stage) for stage in STAGES
        ]

    def all_read() -> str:
        assert not command.has_ended(), command.told
        return "all" if read() == [RECORDS] * len(STAGES) else ""

    def scraped() -> str:
        """The text for Prometheus once it has the last line, which is printed before."""
        with urllib.request.urlopen(address) as answer:
            text = answer.read().decode()
        counted = [counter(text, "records", stage) for stage in STAGES]
        return text if counted == read() else ""

    try:
        wait_until(lambda: told(METRICS) and "".join(command.printed), "progress")
        served = told(METRICS)
        address = served.removeprefix("metrics: ")
        broker.kill()
        wait_until(lambda: told(RESTART), "a restart")
        broker.start()
        send(broker, LAST)
        wait_until(all_read, "all records")
        text = wait_until(scraped, "all records in the metrics")
        status = command.stop()
    finally:
        command.close()

    assert status == 0, command.told
    assert values_of(broker.address, CLEAN) == Counter(map(value_of, range(0, RECORDS, 2)))
    found = verify(tmp_path / "archive", {"bootstrap.servers": broker.address})
    assert (found.faults, found.rows, found.compared) == ([], RECORDS, RECORDS)
    assert read() == [RECORDS] * len(STAGES)
    assert counter(text, "rejected", "clean") == RECORDS // 2
    assert all(line.startswith("{") for line in command.printed)
    for pattern, line in zip(SUMS, sorted(command.told[-len(SUMS) :]), strict=True):
        assert pattern.fullmatch(line), line
    assert [line for line in command.told if OF_SPARK.match(line)] == []
