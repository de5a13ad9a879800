"""The model of scheduled records: it holds, and it finds each fault that is planted into it.

The long search is by hand: `python -m tests.support.schedule.search --seeds 60000`, and with
`--faults` that of each fault.  Faults that are rare have runs that favour them (`parts.FAVOURS`).
"""

from __future__ import annotations

import pytest
from tests.support.schedule.model import first_violation
from tests.support.schedule.parts import FAULTS
from tests.support.schedule.search import search_fault

# Runs of the quick test, of each kind.
SEEDS = 400

# The seed that found each fault, and whether it needs unclean elections.
FOUND_BY = {
    "release_uncommitted": (53, False),
    "checkpoint_uncommitted": (58, False),
    "watermark_too_wide": (46, False),
    "exceptions_forgotten": (13, False),
    "retention_overtakes": (119, False),
    "compaction_eager": (290, False),
    "no_gap_fill": (2, False),
    "own_log_only": (1, False),
    "cancelled_at_once": (2, False),
    "released_at_once": (30, False),
    "unknown_at_once": (2, False),
    "join_by_p": (8, False),
    "hw_of_leader": (2, False),
    "warm_state_kept": (290, False),
    "scan_to_hw": (2, False),
    "no_epoch_rule": (139, True),
    "no_c_check": (1532, True),
    "stale_deadline": (80, False),
    "cancel_by_p_blind": (2, False),
}


@pytest.mark.parametrize("unclean", [False, True])
def test_the_protocol_as_designed_loses_doubles_and_hurries_nothing(unclean: bool) -> None:
    seen: dict[str, int] = {}

    assert first_violation(range(SEEDS), "", unclean, seen) is None
    # A search that meets none of these has looked at nothing.
    for what in ("gaps filled", "cuts of P with releases", "duplicates in the other log"):
        assert seen[what] > 0


def test_each_fault_of_the_model_has_a_seed() -> None:
    assert list(FOUND_BY) == list(FAULTS)


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_planted_fault_is_found(fault: str) -> None:
    seed, unclean = FOUND_BY[fault]
    if first_violation([seed], fault, unclean) is not None:
        return

    assert not search_fault(fault, 4_000).endswith("-1"), "search further by hand"
