"""What a process leaves for the next one on its disk: what can be trusted, what is doubted."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tarry.base.errors import StorageError
from tarry.cluster.lives.last_life import (
    FILE,
    UNREADABLE,
    Doubts,
    LastLife,
    doubted_places,
    read_last_life,
    was_trustworthy,
)
from tarry.simulation.disk import SimulatedDisk

ONE = (bytes(range(16)), 0)
TWO = (bytes(range(16)), 7)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(Random(5))


def steps_after(disk: SimulatedDisk, doubts: Doubts) -> dict[int, Callable[[int], None]]:
    steps: dict[int, Callable[[int], None]] = {}
    doubts._then = steps.__setitem__
    return steps


@pytest.mark.parametrize(
    ("last", "was_clean", "boot_id", "is_trusted"),
    [
        (LastLife("commit", "a"), False, "b", True),
        (LastLife("os", "a"), False, "b", False),
        (LastLife("os", "a"), False, "a", True),
        (LastLife("os", "a"), True, "b", True),
        (LastLife("os", ""), False, "", False),
        (None, False, "b", True),
        (UNREADABLE, True, "a", False),
    ],
)
def test_what_a_last_life_is_trusted_for(
    last: LastLife | None, was_clean: bool, boot_id: str, is_trusted: bool
) -> None:
    """The policy of now says nothing of what was flushed then."""
    found = was_trustworthy(last, "commit", boot_id, was_clean=was_clean)

    assert found == is_trusted


def test_before_there_was_a_last_life_the_policy_of_now_counts() -> None:
    assert not was_trustworthy(None, "os", "a", was_clean=False)


def test_doubts_outlive_a_loss_of_power(disk: SimulatedDisk) -> None:
    Doubts(disk, "os", "boot", [ONE, TWO]).save()
    disk.crash()

    last = read_last_life(disk)
    assert last is not None
    assert (last.flush_policy, last.boot_id) == ("os", "boot")
    assert doubted_places(last) == [ONE, TWO]


def test_a_disk_without_a_last_life_doubts_nothing(disk: SimulatedDisk) -> None:
    assert read_last_life(disk) is None
    assert doubted_places(None) == []


def test_a_damaged_file_is_told_from_none(disk: SimulatedDisk) -> None:
    Doubts(disk, "commit", "boot").save()
    disk.flip_bit(FILE, 0)

    assert read_last_life(disk) is UNREADABLE


def test_a_doubt_about_no_topic_is_damage(disk: SimulatedDisk) -> None:
    file = disk.open(FILE, create=True)
    file.append([b'{"flush_policy":"commit","boot_id":"a","doubts":[["orders",0]]}'])

    assert read_last_life(disk) is UNREADABLE


def test_what_is_settled_is_doubted_no_more_after_its_flush(disk: SimulatedDisk) -> None:
    doubts = Doubts(disk, "commit", "boot", [ONE, TWO])
    doubts.save()
    steps = steps_after(disk, doubts)
    doubts.settle([ONE])

    assert ONE not in doubts
    assert doubted_places(read_last_life(disk)) == [ONE, TWO]
    # Results of the meantime are written afterwards.
    doubts.settle([TWO])
    assert len(steps) == 1
    while steps:
        flush_id, step = steps.popitem()
        disk.complete_flush(flush_id)
        step(flush_id)
    assert doubted_places(read_last_life(disk)) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_while_doubts_are_settled_leaves_a_file_that_can_be_read(seed: int) -> None:
    disk = SimulatedDisk(Random(seed))
    doubts = Doubts(disk, "commit", "boot", [ONE, TWO])
    doubts.save()
    steps = steps_after(disk, doubts)
    doubts.settle([ONE])
    if seed % 2:
        flush_id, step = steps.popitem()
        disk.complete_flush(flush_id)
        step(flush_id)
    disk.crash()

    assert doubted_places(read_last_life(disk)) in ([ONE, TWO], [TWO])


def test_a_full_disk_keeps_the_doubts_and_ends_nothing(disk: SimulatedDisk) -> None:
    doubts = Doubts(disk, "commit", "boot", [ONE, TWO])
    doubts.save()
    steps = steps_after(disk, doubts)
    disk.fail_writes(1)
    doubts.settle([ONE])

    assert steps == {}
    assert doubted_places(read_last_life(disk)) == [ONE, TWO]
    doubts.settle([TWO])
    assert len(steps) == 1


class UnnamingDisk(SimulatedDisk):
    """A disk that refuses the first new name after `is_refusing`."""

    is_refusing = False

    def rename(self, old: str, new: str) -> None:
        if self.is_refusing:
            self.is_refusing = False
            raise StorageError("input/output error")
        super().rename(old, new)


def test_a_disk_that_refuses_the_name_ends_nothing_and_the_next_settlement_counts() -> None:
    disk = UnnamingDisk(Random(5))
    doubts = Doubts(disk, "commit", "boot", [ONE, TWO])
    doubts.save()
    steps = steps_after(disk, doubts)
    disk.is_refusing = True
    for place in (ONE, TWO):
        doubts.settle([place])
        flush_id, step = steps.popitem()
        disk.complete_flush(flush_id)
        step(flush_id)

    assert doubted_places(read_last_life(disk)) == []
