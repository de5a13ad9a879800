"""Programs of `tests/support/processes` that use clients, and what they leave in a topic."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S
from tests.support.places import ROOT

from tarry.client import Admin, Consumer, NewTopic

PROGRAMS = Path(__file__).resolve().parents[1] / "processes"

# Programs share parts of these tests, too.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def command_of(program: str, *words: str) -> list[str]:
    # Newer Pythons warn of every fork of a process with threads.
    warnings = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    return [sys.executable, *warnings, str(PROGRAMS / program), *words]


def run_program(program: str, *words: str) -> str:
    """What the program prints; it ends well and complains of nothing."""
    done = subprocess.run(
        command_of(program, *words),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=ENVIRONMENT,
    )

    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def make_topic(broker: BrokerProcess, name: str) -> str:
    with Admin(bootstrap_servers=broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(name, 1)])
    assert outcome.error is None
    return name


def values_of(broker: BrokerProcess, topic: str) -> list[bytes]:
    """All values of partition 0."""
    found: list[bytes] = []
    with Consumer(bootstrap_servers=broker.address) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([(topic, 0)])[topic, 0]
        while consumer.position(topic, 0) < end:
            for group in consumer.poll(1.0):
                found += [record.value or b"" for record in group.records]
    return found
