"""What the simulated disk promises beyond the door: what a crash may leave, and what it may not."""

from __future__ import annotations

import random

import pytest

from tarry.base.errors import StorageError, TooManyOpenFiles
from tarry.simulation.disk import PowerLoss, SimulatedDisk


def disk_of(seed: int) -> SimulatedDisk:
    return SimulatedDisk(random.Random(seed))


def flushed_file(disk: SimulatedDisk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.append([data])
    disk.flush([file], [""])
    file.close()


def crash_images(data: bytes) -> set[bytes]:
    """Every content that a crash leaves of a file whose name, but no byte, was flushed."""
    images = set()
    for seed in range(300):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"")
        disk.open("a").append([data])
        disk.crash()
        images.add(disk.open("a").read(0, 10_000))
    return images


def test_flushed_bytes_survive_every_crash() -> None:
    for seed in range(50):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"kept" * 300)
        disk.open("a").append([b"perhaps" * 300])

        disk.crash()

        assert disk.open("a").read(0, 1200) == b"kept" * 300


def test_unflushed_bytes_are_kept_lost_torn_or_scattered() -> None:
    data = bytes(range(1, 256)) * 8

    images = crash_images(data)

    assert data in images
    assert b"" in images
    assert any(image == data[: len(image)] and 0 < len(image) < len(data) for image in images)
    assert any(image[:512] == bytes(512) and len(image) > 512 for image in images)


def test_an_unflushed_name_is_kept_or_lost() -> None:
    outcomes = []
    for seed in range(30):
        disk = disk_of(seed)
        file = disk.open("a", create=True)
        disk.flush([file], [])
        disk.crash()
        outcomes.append(disk.exists("a"))

    assert True in outcomes
    assert False in outcomes


def test_an_unflushed_rename_leaves_the_old_or_the_new_file_but_never_none() -> None:
    outcomes = []
    for seed in range(30):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"old")
        flushed_file(disk, "a.tmp", b"new")
        disk.rename("a.tmp", "a")
        disk.crash()
        outcomes.append(disk.open("a").read(0, 3))

    assert sorted(set(outcomes)) == [b"new", b"old"]


def test_two_unflushed_renames_never_leave_a_file_under_two_names() -> None:
    for seed in range(60):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"x")
        disk.rename("a", "b")
        disk.rename("b", "c")

        disk.crash()

        assert len(disk.paths()) == 1


def test_an_unflushed_removal_may_not_have_happened() -> None:
    outcomes = []
    for seed in range(30):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"x")
        disk.remove("a")
        disk.crash()
        outcomes.append(disk.exists("a"))

    assert True in outcomes
    assert False in outcomes


def test_a_directory_whose_name_was_not_flushed_may_be_lost_with_its_files() -> None:
    outcomes = []
    for seed in range(30):
        disk = disk_of(seed)
        disk.make_directory("t-0")
        file = disk.open("t-0/a", create=True)
        disk.flush([file], ["t-0"])
        disk.crash()
        outcomes.append(disk.exists("t-0/a"))

    assert True in outcomes
    assert False in outcomes


def test_bytes_appended_after_a_flush_began_are_not_covered_by_it() -> None:
    survivors = set()
    for seed in range(40):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"")
        file = disk.open("a")
        file.append([b"covered"])
        disk.begin_flush([file], [])
        file.append([b"later"])
        events = disk.complete_flushes()
        disk.crash()
        survivors.add(disk.open("a").read(0, 100))
        assert [event.error for event in events] == [""]

    assert b"covered" in survivors
    assert all(image.startswith(b"covered") for image in survivors)


def test_what_is_written_behind_a_cut_may_be_mixed_with_what_was_cut_until_a_flush() -> None:
    disk = SimulatedDisk()
    file = disk.open("f", create=True)
    file.append([b"abcd"])
    disk.flush([file], [""])

    file.truncate(4)
    file.append([b"e"])
    unmixed = disk.is_written_behind_cut("f")
    file.truncate(2)
    cut = disk.is_written_behind_cut("f")
    file.append([b"x"])
    mixed = disk.is_written_behind_cut("f")
    disk.flush([file], [])

    assert (unmixed, cut, mixed) == (False, False, True)
    assert not disk.is_written_behind_cut("f")


def test_a_flush_under_way_promises_nothing() -> None:
    survivors = set()
    for seed in range(40):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"")
        file = disk.open("a")
        file.append([b"data"])
        disk.begin_flush([file], [])
        disk.crash()
        survivors.add(disk.open("a").read(0, 100))

    assert b"" in survivors
    assert disk.pending_flushes() == []


def test_a_failed_flush_is_told_once_and_the_next_one_hides_the_loss() -> None:
    survivors = set()
    for seed in range(40):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"")
        file = disk.open("a")
        file.append([b"lost"])
        disk.fail_flushes()
        disk.begin_flush([file], [])
        first = disk.complete_flushes()
        disk.begin_flush([file], [])
        second = disk.complete_flushes()
        assert first[0].error != ""
        assert second[0].error == ""
        assert file.read(0, 4) == b"lost"
        disk.crash()
        survivors.add(disk.open("a").read(0, 100))

    assert b"" in survivors


def test_a_killed_process_leaves_bytes_that_are_readable_and_not_durable() -> None:
    survivors = set()
    for seed in range(40):
        disk = disk_of(seed)
        flushed_file(disk, "a", b"")
        disk.open("a").append([b"written"])
        disk.kill()
        assert disk.open("a").read(0, 100) == b"written"
        disk.crash()
        survivors.add(disk.open("a").read(0, 100))

    assert b"" in survivors
    assert b"written" in survivors


def test_a_handle_from_before_a_crash_is_dead() -> None:
    disk = disk_of(1)
    flushed_file(disk, "a", b"x")
    file = disk.open("a")
    disk.crash()

    with pytest.raises(StorageError, match="before the crash"):
        file.read(0, 1)
    with pytest.raises(StorageError, match="before the crash"):
        file.append([b"x"])


def test_a_write_that_fails_leaves_the_size_as_it_was() -> None:
    disk = disk_of(1)
    flushed_file(disk, "a", b"x")
    file = disk.open("a")
    disk.fail_writes(path_part="a")

    with pytest.raises(StorageError):
        file.append([b"yyyy"])

    assert file.size == 1
    assert file.append([b"z"]) == 1
    assert file.read(0, 10) == b"xz"


def test_a_write_beyond_the_budget_fails_and_one_within_it_does_not() -> None:
    disk = SimulatedDisk(capacity_bytes=10)
    file = disk.open("a", create=True)
    file.append([b"123456"])

    with pytest.raises(StorageError):
        file.append([b"78901"])

    assert file.size == 6
    assert file.append([b"7890"]) == 6
    assert disk.free_bytes() == 0


def test_a_read_fault_strikes_the_named_file_only() -> None:
    disk = disk_of(1)
    flushed_file(disk, "a", b"x")
    flushed_file(disk, "b", b"y")
    disk.fail_reads(path_part="a")

    assert disk.open("b").read(0, 1) == b"y"
    with pytest.raises(StorageError):
        disk.open("a").read(0, 1)
    assert disk.open("a").read(0, 1) == b"x"


def test_a_removed_file_is_readable_by_who_holds_it() -> None:
    disk = disk_of(1)
    disk.make_directory("t-0")
    file = disk.open("t-0/a", create=True)
    file.append([b"data"])

    disk.begin_remove("t-0")

    assert not disk.exists("t-0/a")
    assert file.read(0, 10) == b"data"


def test_a_deferred_removal_happens_when_the_world_says_so() -> None:
    disk = disk_of(1)
    disk.defers_removals = True
    flushed_file(disk, "a", b"x")
    disk.begin_remove("a")
    was_there = disk.exists("a")

    disk.complete_removals()

    assert was_there
    assert not disk.exists("a")


def test_a_flipped_bit_stays_flipped_over_a_crash() -> None:
    disk = disk_of(1)
    flushed_file(disk, "a", b"\x00\x00")
    disk.flip_bit("a", 1, 3)
    disk.crash()

    assert disk.open("a").read(0, 2) == b"\x00\x08"


def test_one_seed_gives_one_outcome() -> None:
    def image(seed: int) -> bytes:
        disk = disk_of(seed)
        flushed_file(disk, "a", b"")
        for size in (100, 900, 2000):
            disk.open("a").append([bytes([size % 251]) * size])
        disk.crash()
        return disk.open("a").read(0, 10_000)

    assert [image(seed) for seed in range(20)] == [image(seed) for seed in range(20)]


def test_the_power_may_fail_before_any_operation() -> None:
    disk = disk_of(1)
    flushed_file(disk, "a", b"x")
    file = disk.open("a")
    disk.crash_after(1)
    file.append([b"y"])

    with pytest.raises(PowerLoss):
        file.append([b"z"])

    assert file.read(0, 10) == b"xy"


def test_a_file_that_is_lost_does_not_come_back_in_a_crash() -> None:
    for seed in range(20):
        disk = SimulatedDisk(random.Random(seed))
        disk.open("a", create=True).append([b"old"])
        disk.rename("a", "b")

        disk.lose_file("b")
        disk.crash()

        assert disk.paths() == []


def test_a_refused_directory_is_neither_made_nor_listed_nor_opened_until_it_is_accepted() -> None:
    disk = SimulatedDisk()
    disk.refuse_directory("t-0")
    for attempt in (
        lambda: disk.make_directory("t-0"),
        lambda: disk.paths("t-0"),
        lambda: disk.open("t-0/x.log", create=True),
    ):
        with pytest.raises(StorageError, match="permission denied"):
            attempt()
    disk.make_directory("t-1")

    disk.accept_directory("t-0")
    disk.make_directory("t-0")

    assert disk.paths() == ["t-0/", "t-1/"]


def test_files_and_directories_of_a_flush_take_descriptors_until_none_is_left() -> None:
    disk = SimulatedDisk()
    disk.files_left = 2
    file = disk.open("a", create=True)

    with pytest.raises(TooManyOpenFiles):
        disk.begin_flush([file], ["", ""])
    flush_id = disk.begin_flush([file], [""])
    with pytest.raises(TooManyOpenFiles):
        disk.open("b", create=True)
    disk.heal()

    assert disk.complete_flush(flush_id).error == ""
    assert disk.open("b", create=True).size == 0
