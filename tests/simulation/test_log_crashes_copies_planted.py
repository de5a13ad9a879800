"""Mistakes planted in the log of a follower are found by the lives of `test_log_crashes_copies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulation import test_log_crashes_copies as lives

from tarry.base.errors import TarryError
from tarry.log.recovery import point_writer, truncation
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint
from tarry.log.recovery.recovery import _Recovery
from tarry.log.segment import Segment
from tarry.log.state import EMPTYING, GIVING_UP, Cut
from tarry.simulation.disk import SimulatedDisk

SEEDS = 300

Plant = Callable[[pytest.MonkeyPatch], None]


def what_is_torn_off_counts_as_a_gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_Recovery, "_is_behind_gap", lambda self, log, base_offset: log.has_gaps)


def a_segment_without_a_batch_proves_a_gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        _Recovery,
        "_is_behind_gap",
        lambda self, log, base_offset: base_offset in self.listing.gap_offsets,
    )


def gaps_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Listing, "has_gaps", property(lambda self: False))


def a_read_in_a_gap_gives_the_batch_before_it(patch: pytest.MonkeyPatch) -> None:
    find = Segment.find

    def careless(self: Segment, offset: int, end: int) -> int:
        had_gaps = self.has_gaps
        self.has_gaps = False
        try:
            return find(self, offset, end)
        finally:
            self.has_gaps = had_gaps

    patch.setattr(Segment, "find", careless)


def derived_state_does_not_follow_a_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(truncation, "_begin_restoring", lambda log: int(log.log_end_offset))


def snapshots_from_behind_a_cut_stay(patch: pytest.MonkeyPatch) -> None:
    remove = SimulatedDisk.remove

    def forgetful(self: SimulatedDisk, path: str) -> None:
        if not path.endswith(".snapshot"):
            remove(self, path)

    patch.setattr(SimulatedDisk, "remove", forgetful)


def files_keep_their_names_until_they_are_gone(patch: pytest.MonkeyPatch) -> None:
    def under_their_names(log, segment):
        for path in segment.file_paths():
            if log.disk.exists(path):
                log.disk.begin_remove(path)
                log.unflushed.note_name()

    patch.setattr(truncation, "_remove_files", under_their_names)


def a_recovery_point_in_the_middle_of_a_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cut, "has_begun", property(lambda self: False))
    patch.setattr(Cut, "must_end", property(lambda self: False))


def a_restart_looks_like_any_other_row(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecoveryPoint, "is_restart", property(lambda self: False))


def a_restart_without_its_row(patch: pytest.MonkeyPatch) -> None:
    def at_once(log, offset):
        is_done = truncation.try_restart(log, offset)
        if log.cut.state == GIVING_UP:
            log.cut.enter(EMPTYING, log.cut.offset)
        return is_done

    patch.setattr(lives, "try_restart", at_once)


PLANTS: Final[list[Plant]] = [
    what_is_torn_off_counts_as_a_gap,
    a_segment_without_a_batch_proves_a_gap,
    gaps_are_forgotten,
    a_read_in_a_gap_gives_the_batch_before_it,
    derived_state_does_not_follow_a_cut,
    snapshots_from_behind_a_cut_stay,
    files_keep_their_names_until_they_are_gone,
    a_recovery_point_in_the_middle_of_a_cut,
    a_restart_looks_like_any_other_row,
    a_restart_without_its_row,
]


@pytest.mark.interpreted
@pytest.mark.parametrize("plant", PLANTS, ids=[plant.__name__ for plant in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_writer, "RECOVERY_POINT_AGE_MS", 10)
    monkeypatch.setattr(truncation, "SEGMENTS_PER_CALL_MAX", 2)
    monkeypatch.setattr(truncation, "BATCHES_PER_CALL_MAX", 3)
    plant(monkeypatch)
    found = -1

    for seed in range(SEEDS):
        try:
            lives.live(seed)
        except (AssertionError, LookupError, StopIteration, TarryError):
            found = seed
            break

    assert found >= 0, f"{plant.__name__} was not found in {SEEDS} seeds"
