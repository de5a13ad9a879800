"""A stream from a topic to a topic whose driver dies at every step of the sink."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.errors import StreamingQueryException
from tests.spark.conftest import what_is_missing
from tests.support.broker_process import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.spark.audit import make_topic, values_of
from tests.support.spark.stream_program import A_BATCH, run
from tests.support.spark.trap import Trap, snapped, trapped_source

from tarry.client import Producer

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 6 * A_BATCH
# Spark's workers may fail by themselves on a machine that is very busy.
RESTARTS_MORE = 20
STARTS_MAX = 10
# Spark's Java waits for ever for a worker that could not reach it in time: such a driver is killed
# and started again.  One that is well ends within 20 s.
DRIVER_S_MAX = 100
DRIVERS_LOG = "drivers.log"
# Exit code of Python after an exception.
FAILED = 1

TRAPS = [
    Trap(0, "CreatePlan", is_behind=False),
    Trap(1, "CreatePlan", is_behind=True),
    Trap(2, "SendRound", is_behind=True, nth=2),
    Trap(3, "MarkDone", is_behind=False),
    Trap(4, "RemoveFiles", is_behind=False),
]


def fill(bootstrap, source, target, count):
    """Make both topics and fill the first one; return the values in it."""
    make_topic(bootstrap, source, 2)
    make_topic(bootstrap, target, 2)
    sent = [b"%d" % number for number in range(count)]
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in sent:
            producer.send(source, value, key=value[-2:])
    return sent


@pytest.mark.parametrize("kind", ["tarry", "kafka"])
def test_every_record_is_written_once_wherever_the_driver_dies(
    spark, request, tmp_path, checkpoint, kind
):
    if kind == "tarry":
        bootstrap = request.getfixturevalue("broker").bootstrap
    else:
        bootstrap = request.getfixturevalue("apache_kafka")
    source, target = f"killed-in-{kind}", f"killed-out-{kind}"
    sent = fill(bootstrap, source, target, RECORDS)
    spark.dataSource.register(trapped_source(TRAPS, str(tmp_path)))

    deaths = 0
    while True:
        try:
            run(spark, bootstrap, source, target, checkpoint)
            break
        except StreamingQueryException:
            deaths += 1
            if deaths > len(TRAPS) + RESTARTS_MORE:
                raise

    assert snapped(str(tmp_path), len(TRAPS)) == len(TRAPS)
    assert values_of(bootstrap, target) == dict.fromkeys(sent, 1)


def driver(bootstrap, source, target, folder, *traps):
    """Start a driver in a process group of its own."""
    program = [sys.executable, "-m", "tests.support.spark.stream_program"]
    arguments = [bootstrap, source, target, str(folder), json.dumps(traps)]
    with (folder / DRIVERS_LOG).open("ab") as log:
        return subprocess.Popen(
            [*program, *arguments],
            cwd=ROOT,
            env={**os.environ, "SPARK_LOCAL_DIRS": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def told(folder: Path) -> str:
    """The end of what all drivers have told, for a failure."""
    return (folder / DRIVERS_LOG).read_text(errors="replace")[-20_000:]


def has_stopped_or_ended(flag: Path, run: subprocess.Popen[bytes], end: float) -> bool:
    return flag.exists() or run.poll() is not None or time.monotonic() > end


def kill(run: subprocess.Popen[bytes]) -> None:
    """Kill a driver with all its processes, if it still runs."""
    if run.poll() is None:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait(PATIENCE_S)


def end_of(here, *traps):
    """Return how a driver ends.  One that Spark could give no worker in time is started again."""
    for _ in range(STARTS_MAX):
        run = driver(*here, *traps)
        try:
            status = run.wait(DRIVER_S_MAX)
        except subprocess.TimeoutExpired:
            status = FAILED
        finally:
            kill(run)
        if status != FAILED:
            break
    return status


@pytest.mark.timeout(2 * STARTS_MAX * DRIVER_S_MAX)
def test_a_driver_that_is_killed_and_one_that_slept_double_nothing(broker, tmp_path):
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    topics = "twins-in", "twins-out"
    sent = fill(broker.bootstrap, *topics, 3 * A_BATCH)
    here = (broker.bootstrap, *topics, tmp_path)
    sleeps = Trap(0, "SendRound", is_behind=True, nth=2, what="stop")
    dies = Trap(1, "SendRound", is_behind=True, nth=2, what="driver")
    flag = tmp_path / "trap-0"

    sleeper = driver(*here, sleeps)
    try:
        for _ in range(STARTS_MAX):
            end = time.monotonic() + DRIVER_S_MAX
            wait_until(partial(has_stopped_or_ended, flag, sleeper, end), "a stop")
            if flag.exists():
                break
            kill(sleeper)
            sleeper = driver(*here, sleeps)
        stopped = int(wait_until(flag.read_text, "the stopped process"))
        # Trap 0 has snapped, so the second one has to be trap 1.
        assert end_of(here, sleeps, dies) == -signal.SIGKILL, told(tmp_path)
        assert end_of(here) == 0, told(tmp_path)
        os.kill(stopped, signal.SIGCONT)
        # Spark finds that another driver has written to the checkpoint.
        assert sleeper.wait(PATIENCE_S) != 0
    finally:
        kill(sleeper)

    assert values_of(broker.bootstrap, topics[1]) == dict.fromkeys(sent, 1)
