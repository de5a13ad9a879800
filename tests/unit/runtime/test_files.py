"""Files of the system: what only it can do wrong, and who holds a descriptor."""

from __future__ import annotations

import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from tarry.base.doors import FileRegion
from tarry.base.errors import StorageError, TooManyOpenFiles
from tarry.runtime import flusher as flusher_module
from tarry.runtime.files import OsDisk
from tarry.runtime.flusher import Flusher


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[OsDisk]:
    flusher = Flusher(lambda: None)
    yield OsDisk(str(tmp_path), flusher)
    flusher.close(5.0)


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The kernel then takes a part of a write and refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_short_write_raises_and_leaves_the_file_as_it_was(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open("a", create=True)
    file.append([b"kept"])

    with files_no_larger_than(10), pytest.raises(StorageError, match=r"^a: File too large"):
        file.append([b"01234", b"56789"])

    assert file.size == 4
    assert (tmp_path / "a").read_bytes() == b"kept"
    assert file.append([b"!"]) == 4


def test_a_write_that_fails_in_its_second_part_takes_the_first_part_back(
    disk: OsDisk, tmp_path: Path
) -> None:
    file = disk.open("a", create=True)
    chunks: list[bytes | memoryview] = [b"0123456789"] * 2_000

    with files_no_larger_than(15_000), pytest.raises(StorageError):
        file.append(chunks)

    assert file.size == 0
    assert (tmp_path / "a").stat().st_size == 0


def test_a_write_that_is_refused_raises(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])

    with files_no_larger_than(10), pytest.raises(StorageError, match=r"^a: "):
        file.append([b"x"])

    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_file_that_was_cut_behind_our_back_is_a_storage_error(
    disk: OsDisk, tmp_path: Path
) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])
    os.truncate(tmp_path / "a", 5)

    with pytest.raises(StorageError, match="something else has cut it"):
        file.read(0, 10)


def test_a_read_that_the_system_gives_in_many_parts_is_whole(
    disk: OsDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])
    pread = os.pread
    monkeypatch.setattr(
        os, "pread", lambda descriptor, size, position: pread(descriptor, min(size, 3), position)
    )

    assert file.read(0, 10) == b"0123456789"
    assert file.read(2, 100) == b"23456789"


def test_files_and_directories_are_the_owners_alone(disk: OsDisk, tmp_path: Path) -> None:
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True)

    assert stat.S_IMODE((tmp_path / "t-0").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "t-0/a").stat().st_mode) == 0o600


def test_a_link_is_not_followed(disk: OsDisk, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("target")

    with pytest.raises(StorageError):
        disk.open("link")


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "t-0/../../a"])
def test_a_path_out_of_the_directory_is_our_own_mistake(disk: OsDisk, path: str) -> None:
    with pytest.raises(AssertionError):
        disk.open(path)


def test_the_descriptor_is_given_back_when_nobody_holds_the_file(disk: OsDisk) -> None:
    before = open_descriptors()
    file = disk.open("a", create=True)
    file.append([b"x"])
    region = FileRegion(file, 0, 1)

    file.close()
    del file
    assert open_descriptors() == before + 1
    assert region.file.read(0, 1) == b"x"
    del region

    assert open_descriptors() == before


def test_a_tree_with_a_link_out_of_it_is_removed_without_its_target(
    disk: OsDisk, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"")
    disk.make_directory("t-0")
    (tmp_path / "t-0" / "link").symlink_to(outside)
    flusher = Flusher(lambda: None)

    OsDisk(str(tmp_path), flusher).begin_remove("t-0")
    flusher.close(5.0)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (outside / "kept").exists()


@pytest.fixture
def may_go_on(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The thread that removes waits for it before the file `slow`."""
    event = threading.Event()
    remove = flusher_module._remove

    def waiting_remove(path: str) -> None:
        if path.endswith("slow"):
            assert event.wait(PATIENCE_S)
        remove(path)

    monkeypatch.setattr(flusher_module, "_remove", waiting_remove)
    return event


@pytest.fixture
def flusher() -> Iterator[Flusher]:
    flusher = Flusher(lambda: None)
    yield flusher
    flusher.close(5.0)


def test_a_late_removal_does_not_take_the_file_of_a_directory_made_again(
    tmp_path: Path, flusher: Flusher, may_go_on: threading.Event
) -> None:
    disk = OsDisk(str(tmp_path), flusher)
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True)
    disk.open("slow", create=True)
    disk.begin_remove("slow")
    disk.begin_remove("t-0/a")

    disk.rename("t-0", "t-0.deleted")
    disk.rename("t-0.deleted", "t-0.away")
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True)
    may_go_on.set()
    flusher.close(5.0)

    assert disk.paths() == ["t-0/", "t-0.away/"]
    assert disk.paths("t-0") == ["t-0/a"]
    assert disk.paths("t-0.away") == []


def test_removals_that_are_done_are_forgotten(
    tmp_path: Path, flusher: Flusher, may_go_on: threading.Event
) -> None:
    disk = OsDisk(str(tmp_path), flusher)
    may_go_on.set()
    for number in range(100):
        disk.begin_remove(f"{number}")
    flusher.close(5.0)

    disk.begin_remove("another")

    assert sum(map(len, flusher._waiting.values())) == 1


@contextmanager
def descriptors_no_more_than(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_last_descriptors_are_left_to_flushes(tmp_path: Path) -> None:
    """Only a flush gives back what holds the others."""
    flusher = Flusher(lambda: None)
    opened = []

    with descriptors_no_more_than(open_descriptors() + 80):
        disk = OsDisk(str(tmp_path), flusher)
        with pytest.raises(TooManyOpenFiles, match=r"^f\d+: too many files are open; raise"):
            for number in range(1_000):
                opened.append(disk.open(f"f{number}", create=True))
        disk.flush([*opened], [""])

    flusher.close(5.0)
    assert len(opened) > 30


def test_a_flush_that_is_refused_holds_no_directory_open(disk: OsDisk) -> None:
    """The error's traceback refers to what was opened, for as long as the error is handled."""
    names = [f"d{number}" for number in range(20)]
    for name in names:
        disk.make_directory(name)
    before = open_descriptors()

    with (
        descriptors_no_more_than(before + 10),
        pytest.raises(TooManyOpenFiles) as refused,
    ):
        disk.begin_flush([], names)

    assert open_descriptors() == before
    assert refused.value.__traceback__ is not None
