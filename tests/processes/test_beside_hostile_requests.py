"""Members of groups and honest clients live on beside the frames that once stopped a broker.

`tests/support/processes/hostile_requests.py` sends the largest requests of every API, and measures.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.processes.hostile_requests import (
    MIB_MAX,
    beside_members,
    of_the_finding,
    serving,
)

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

MEMBERS = 300


@pytest.mark.parametrize("count", [1, 3], ids=["one broker", "three brokers"])
def test_nobody_else_notices_what_a_stranger_sends(tmp_path: Path, count: int) -> None:
    frames = of_the_finding(MEMBERS)

    with serving(tmp_path, count) as brokers:
        outcome = beside_members(brokers, MEMBERS, frames)

    assert [row.label for row in outcome.rows] == [label for label, *_ in frames]
    assert [row.label for row in outcome.rows if row.mib > MIB_MAX] == []
    # What comes again is answered once, so no answer is longer than its request.
    assert [row.label for row in outcome.rows if row.answer > row.size] == []
    assert (outcome.refused, outcome.lost_lives) == ({}, 0)
