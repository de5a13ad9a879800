"""Rounds of an auditor over the whole pipeline of the example, with a real Spark that is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.spark.conftest import what_is_missing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

JVM = "jvm"
WORKERS = "Python workers"
SLEEP = "sleep"
# The name under which the sleep is counted.
SLEPT = "driver sleeps behind SendRound"


@pytest.fixture(autouse=True)
def _can_run() -> None:
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)


def run_rounds(directory: Path, *deaths: str, more: tuple[str, ...] = ()) -> Counter[str]:
    """Run a round for each death, and see that the auditor finds nothing wrong; return the deaths
    that were met."""
    from tests.support.spark.rounds import Rounds, read_arguments

    asked = [word for death in deaths for word in ("--death", death)]
    size = ("--rounds", str(len(deaths)), "--orders", "60", "--plain")
    directory = directory / "rounds"
    directory.mkdir()
    rounds = Rounds(read_arguments([*size, *asked, *more, str(directory)]))

    is_well = rounds.run()

    assert is_well, (directory / "runs.log").read_text(errors="replace")[-8_000:]
    # There were windows to compare.
    windows = next(check.found for check in rounds.checks if "revenue" in check.sentence)
    assert int(windows.split()[0]) > 0
    return rounds.deaths


def test_each_order_is_accounted_for_though_workers_and_a_jvm_die(tmp_path: Path) -> None:
    assert run_rounds(tmp_path, WORKERS, JVM) == {WORKERS: 1, JVM: 1}


def test_each_order_is_in_apache_kafka_once_though_a_driver_slept_and_another_one_ended(
    apache_kafka: str,
    tmp_path: Path,
) -> None:
    met = run_rounds(tmp_path, SLEEP, more=("--bootstrap", apache_kafka))

    assert met == {SLEPT: 1}
