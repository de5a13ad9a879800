"""Rounds of an auditor over the sink and the archive, whose driver or broker dies in each."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from tests.support.spark.small_rounds import SmallRounds

ROUNDS = 10


@pytest.mark.timeout(900)
def test_each_record_is_accounted_for_whatever_dies(tmp_path: Path) -> None:
    rounds = SmallRounds(tmp_path, seed=7)
    try:
        rounds.start()
        flaws = [rounds.round(is_finished=False) for _ in range(ROUNDS)]
        assert rounds.finish(), (tmp_path / "drivers.log").read_text()[-4000:]
        flaws.append(rounds.flaws())
    finally:
        rounds.close()

    assert flaws == [[]] * (ROUNDS + 1)
    # A driver that comes to its end before it is killed is no death.
    assert sum(count for what, count in rounds.deaths.items() if "not met" not in what) > 0
