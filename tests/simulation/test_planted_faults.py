"""The simulation's grade: each planted fault is found within 200 seeds.

The faults replace functions of the product in processes of their own, two at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tarry.simulation.run import run_seed

SEEDS = 200
PROGRAM = Path(__file__).with_name("planted_faults.py")

NAMES = (
    "acknowledge_before_the_flush",
    "ignore_a_failed_flush",
    "keep_a_torn_tail",
    "cut_a_flushed_byte",
    "know_one_batch_of_a_producer",
    "forget_producers_in_a_restart",
    "high_watermark_past_the_flush",
    "keep_the_leader_epoch_over_a_crash",
    "trust_the_index_after_a_crash",
    "lose_the_wake_up_of_a_fetch",
    "answer_a_fetch_only_when_it_expires",
    "apply_metadata_before_it_is_durable",
    "answer_a_duplicate_before_the_original_is_durable",
    "show_a_log_start_that_is_not_durable",
    "forget_the_names_of_a_killed_life",
    "start_uncleanly_without_taking_the_marker_away",
    "count_a_stop_of_the_process_as_waiting",
)

pytestmark = [pytest.mark.interpreted, pytest.mark.process, pytest.mark.slow]


def search(name: str) -> str:
    """The seed and the sentence that the search prints."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name, str(SEEDS)],
        env={**os.environ, "TARRY_PURE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def searches() -> Iterator[dict[str, Future[str]]]:
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(search, name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_found(name: str, searches: dict[str, Future[str]]) -> None:
    seed, _, sentence = searches[name].result().partition(" ")

    assert int(seed) >= 1, f"{SEEDS} seeds do not find it"
    assert sentence
    assert run_seed(int(seed)).failure == "", "the seed fails without the fault as well"
