"""Replicas and leaders that operators move about, while everything goes wrong."""

from __future__ import annotations

import pytest
from tests.support.cluster.operated_cluster import OPERATED

# Some of them have found what was wrong once.
SEEDS = {"records": (20, 21, 22, 60, 62, 82, 85, 93), "groups": (1, 2, 3)}


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind, seeds in SEEDS.items() for seed in seeds]
)
def test_nothing_is_lost_while_operators_move_replicas_and_leaders(kind: str, seed: int) -> None:
    assert OPERATED[kind](seed, None).run() == []
