"""The broker over many seeds: nothing that a client could see is wrong, and a seed is a seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.simulation.seeds import SEEDS

import tarry
from tarry.simulation.run import run_seed

BLOCK = 20

BLOCKS = [(workload, first) for workload in SEEDS for first in range(1, SEEDS[workload] + 1, BLOCK)]

# Where both forms run, the interpreted one, which takes three times as long, has every tenth block.
if os.environ.get("TARRY_TEST_PART"):
    is_compiled = tarry.FORM == "compiled"
    BLOCKS = [each for number, each in enumerate(BLOCKS) if (number % 10 > 0) == is_compiled]

DIGESTS = """
from tarry.simulation.run import WORKLOADS, run_seed
for seed in range(1, 5):
    print(seed, *(run_seed(seed, workload=name).digest for name in WORKLOADS))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "first"), BLOCKS)
def test_nothing_is_wrong_in_any_seed(workload: str, first: int) -> None:
    failures = {}
    for seed in range(first, min(first + BLOCK, SEEDS[workload] + 1)):
        outcome = run_seed(seed, workload=workload)
        if outcome.failure:
            failures[seed] = outcome.failure

    assert failures == {}


@pytest.mark.parametrize(
    ("workload", "seed"),
    [
        # After an unclean election the leader of before, cut off, still acknowledges.
        ("cluster", 2132),
        # A coordinator that loads answers a heartbeat of who is no member any more.
        ("cluster-groups", 445),
        ("cluster-groups", 463),
        # The answer that tells a member of its round is lost, and the member has no partition.
        ("cluster-groups", 506),
    ],
)
def test_what_the_protocol_allows_raises_no_alarm(workload: str, seed: int) -> None:
    assert run_seed(seed, workload=workload).failure == ""


def test_a_reassignment_whose_leader_has_lost_its_life_blames_no_watch() -> None:
    """It went on failing, as its guard did not hold, and that was taken for a lost change."""
    assert run_seed(66, workload="cluster-groups").failure == ""


def test_a_late_fetch_that_begins_a_session_lets_no_deposed_coordinator_answer() -> None:
    """The link was cut as the fetch left, and whole again when another coordinator had commits."""
    assert run_seed(175, workload="cluster-groups-isolated").failure == ""


@pytest.mark.process
def test_a_seed_has_one_digest_whatever_the_hash_seed_of_the_process() -> None:
    digests = []
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        digests.append(done.stdout)

    assert digests[0].count("\n") == 4
    assert digests[0] == digests[1]


def test_two_seeds_have_two_digests() -> None:
    assert run_seed(1).digest != run_seed(2).digest


def test_a_replay_keeps_the_lines_of_the_trace() -> None:
    outcome = run_seed(3, keeps_trace=True)

    assert outcome.digest == run_seed(3).digest
    assert any("life 1 begins" in line for line in outcome.lines)
