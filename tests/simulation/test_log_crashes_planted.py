"""Mistakes planted in compaction are found by the lives of `test_log_crashes_compaction`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

import pytest
from tests.simulation.test_log_crashes_compaction import age, live

from tarry.base.errors import TarryError
from tarry.log.compaction import batch, cleanable, compaction
from tarry.log.compaction.batch import BatchCompaction
from tarry.log.compaction.checkpoint import CompactionCheckpoint, FoundCompaction
from tarry.log.compaction.compaction import GO_ON, Compaction
from tarry.log.compaction.key_map import KeyMap
from tarry.log.compaction.key_rule import KeyRule
from tarry.log.recovery import point_writer, recovery
from tarry.log.segment import Segment
from tarry.records.rebuild import has_delete_horizon
from tarry.simulation.disk import SimulatedDisk

SEEDS = 150

Plant = Callable[[pytest.MonkeyPatch], None]


def swap_before_the_checkpoint_is_durable(patch: pytest.MonkeyPatch) -> None:
    def at_once(self: Compaction) -> int:
        self._swap()
        return GO_ON

    patch.setattr(Compaction, "_flush_swap", at_once)


def recovery_point_before_the_files_are_durable(patch: pytest.MonkeyPatch) -> None:
    begin_flush = SimulatedDisk.begin_flush

    def forgetful(self, files, directories):
        kept = [file for file in files if not file.path.endswith(".cleaned")]
        return begin_flush(self, kept, directories)

    patch.setattr(SimulatedDisk, "begin_flush", forgetful)


def recovery_point_before_the_names_are_durable(patch: pytest.MonkeyPatch) -> None:
    begin_flush = SimulatedDisk.begin_flush

    def forgetful(self, files, directories):
        is_ours = any(file.path.endswith(".cleaned") for file in files)
        return begin_flush(self, files, [] if is_ours else directories)

    patch.setattr(SimulatedDisk, "begin_flush", forgetful)


def a_start_does_not_finish_the_swap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "finish_swap", lambda disk, listing, void_generation: FoundCompaction())


def new_files_have_the_same_name_each_time(patch: pytest.MonkeyPatch) -> None:
    make = compaction.CompactedSegment.__init__
    patch.setattr(
        compaction.CompactedSegment,
        "__init__",
        lambda self, log, base_offset, generation: make(self, log, base_offset, 1),
    )


def an_older_recovery_point_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactionCheckpoint, "covered_rows", lambda self, point: point.segments)


def the_first_value_stays(patch: pytest.MonkeyPatch) -> None:
    put = KeyMap.put

    def put_first(self: KeyMap, key: bytes, offset: int) -> None:
        if self.last_offset(key) < 0:
            put(self, key, offset)

    patch.setattr(KeyMap, "put", put_first)


def the_last_value_goes_with_the_rest(patch: pytest.MonkeyPatch) -> None:
    def last_offset(self: KeyMap, key: bytes) -> int:
        found = original(self, key)
        return found + 1 if found % 7 == 3 else found

    original = KeyMap.last_offset
    patch.setattr(KeyMap, "last_offset", last_offset)


def a_full_map_counts_as_whole(patch: pytest.MonkeyPatch) -> None:
    end_mapping = Compaction._end_mapping

    def to_the_end(self: Compaction, end_offset: int, now_wall_ms: int) -> None:
        end_mapping(self, self._map_end, now_wall_ms)

    patch.setattr(Compaction, "_end_mapping", to_the_end)


def the_dirty_part_alone_is_copied(patch: pytest.MonkeyPatch) -> None:
    """Old values of what was deleted stay, and come back when their tombstone goes."""
    begin_copying = Compaction._begin_copying

    def dirty_only(self: Compaction, sources: list[Segment], now_wall_ms: int) -> None:
        begin_copying(self, sources, now_wall_ms)
        cleaned_offset = self.log.compaction.cleaned_offset
        later = [source for source in self._sources if source.base_offset >= cleaned_offset]
        if later:
            self._sources = later

    patch.setattr(Compaction, "_begin_copying", dirty_only)


def a_value_survives_its_tombstone(patch: pytest.MonkeyPatch) -> None:
    """The tombstone goes in its time, and what it deleted is there again."""

    def last_offset(self: KeyMap, key: bytes) -> int:
        return -1 if key == b"k3" else original(self, key)

    original = KeyMap.last_offset
    patch.setattr(KeyMap, "last_offset", last_offset)


def producers_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KeyRule, "_keeps_sequence", lambda self, header: False)


def segments_go_while_they_are_read(patch: pytest.MonkeyPatch) -> None:
    step = Compaction.step

    def careless(self, effort, now_wall_ms):
        self.log.compaction.target_offset = -1
        return step(self, effort, now_wall_ms)

    patch.setattr(Compaction, "step", careless)


def gaps_count_as_damage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FoundCompaction, "gaps_end_offset", lambda self, last_base_offset: 0)


def times_do_not_follow_the_horizon(patch: pytest.MonkeyPatch) -> None:
    def begin_encoding(self, effort):
        rebuilt = self._rebuilt
        rebuilt.base_timestamp -= rebuilt.base_timestamp % 3
        original(self, effort)

    original = BatchCompaction._begin_encoding
    patch.setattr(BatchCompaction, "_begin_encoding", begin_encoding)


def every_pass_begins_the_time_of_tombstones_anew(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks whether tombstones may go learns of a horizon, who would begin one does not."""
    asked = itertools.count(1)
    patch.setattr(
        batch,
        "has_delete_horizon",
        lambda header: next(asked) % 2 == 1 and has_delete_horizon(header),
    )


def young_segments_are_skipped(patch: pytest.MonkeyPatch) -> None:
    """The dirty part goes on behind a segment that is too young."""
    patch.setattr(cleanable, "newest_ms", lambda segment, now_wall_ms: 0)


PLANTS: Final[list[Plant]] = [
    swap_before_the_checkpoint_is_durable,
    recovery_point_before_the_files_are_durable,
    recovery_point_before_the_names_are_durable,
    a_start_does_not_finish_the_swap,
    new_files_have_the_same_name_each_time,
    an_older_recovery_point_wins,
    the_first_value_stays,
    the_last_value_goes_with_the_rest,
    a_full_map_counts_as_whole,
    the_dirty_part_alone_is_copied,
    a_value_survives_its_tombstone,
    producers_are_not_asked,
    segments_go_while_they_are_read,
    gaps_count_as_damage,
    times_do_not_follow_the_horizon,
    every_pass_begins_the_time_of_tombstones_anew,
    young_segments_are_skipped,
]


@pytest.mark.interpreted
@pytest.mark.parametrize("plant", PLANTS, ids=[plant.__name__ for plant in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_writer, "RECOVERY_POINT_AGE_MS", 10)
    plant(monkeypatch)
    found = -1

    for seed in range(SEEDS):
        try:
            live(seed)
            age(seed)
        except (AssertionError, LookupError, TarryError, ValueError):
            found = seed
            break

    assert found >= 0, f"{plant.__name__} was not found in {SEEDS} seeds"
