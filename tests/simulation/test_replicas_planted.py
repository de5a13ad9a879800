"""Mistakes planted in replication are found by the runs of `test_replicas`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.support.cluster.replica_run import ReplicaRun

from tarry.base.errors import TarryError
from tarry.broker.replication import replica_reads
from tarry.partition.followers import NOT_TOLD, Followers
from tarry.partition.producers import ProducerStates
from tarry.partition.state import Partition

SEEDS = 12

Plant = Callable[[pytest.MonkeyPatch], None]


def the_leader_alone_says_what_is_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Followers, "high_watermark", lambda self, own_end, in_sync, floor: own_end)


def what_is_written_counts_as_flushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "leader_contribution", lambda self: self.log.written_end_offset)


def who_has_not_told_its_end_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def high_watermark(self: Followers, own_end: int, in_sync: int, floor: int) -> int:
        ends = [self.by_id[one].end for one in self.counted if one in self.by_id]
        return min([own_end, *[end for end in ends if end != NOT_TOLD]])

    patch.setattr(Followers, "high_watermark", high_watermark)


def an_addition_counts_once_it_is_applied(patch: pytest.MonkeyPatch) -> None:
    def recount(
        self: Followers, isr: list[int], living: dict[int, int], joining: list[int]
    ) -> None:
        self.counted = [one for one in isr if one != self.own_id]

    patch.setattr(Followers, "recount", recount)


def anybody_may_join(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Followers, "may_join", lambda self, follower, *ends: follower.end != NOT_TOLD)


def logs_that_diverge_go_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replica_reads, "divergence", lambda log, asked: None)


def producers_are_not_followed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "follow", lambda self, header, now_ms: None)


PLANTS: Final[list[Plant]] = [
    the_leader_alone_says_what_is_committed,
    what_is_written_counts_as_flushed,
    who_has_not_told_its_end_does_not_count,
    an_addition_counts_once_it_is_applied,
    anybody_may_join,
    logs_that_diverge_go_on,
    producers_are_not_followed,
]


@pytest.mark.interpreted
@pytest.mark.parametrize("plant", PLANTS, ids=[plant.__name__ for plant in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found: list[str] = []

    for seed in range(SEEDS):
        run = ReplicaRun(seed)
        try:
            run.play()
            found = run.violations()
        except (AssertionError, LookupError, TarryError) as error:
            found = [str(error)]
        if found:
            break

    assert found, f"{plant.__name__} was not found in {SEEDS} seeds"
