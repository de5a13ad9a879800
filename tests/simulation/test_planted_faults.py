"""The simulation's grade: each planted fault is found within as many seeds as run in `make test`.

The faults replace functions of the product in processes of their own, two at a time.  A seed
that finds one is among those of `test_seeds`, which finds nothing wrong while nothing is planted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.simulation.search import names

pytestmark = [pytest.mark.interpreted, pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, tuple[int, str]]:
    """Seed and sentence for each of the faults that were chosen."""
    chosen = [item.callspec.params for item in request.session.items if item.path == request.path]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.simulation.search"]
        + [params["name"] for params in chosen],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TARRY_PURE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    found = {}
    for line in done.stdout.splitlines():
        name, seed, *sentence = line.split(" ", 2)
        found[name] = int(seed), "".join(sentence)
    return found


@pytest.mark.parametrize("name", names())
def test_a_planted_fault_is_found(name: str, found: dict[str, tuple[int, str]]) -> None:
    seed, sentence = found[name]

    assert seed >= 1, "no seed of its workload finds it"
    assert sentence
