"""One suite over all implementations of the door `Disk`: the system's and the simulated one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarry.base.doors import FLUSHED, Disk, Event
from tarry.base.errors import StorageError
from tarry.runtime.files import OsDisk
from tarry.runtime.flusher import Flusher
from tarry.runtime.poller import READABLE, make_poller
from tarry.runtime.reactor import Reactor
from tarry.runtime.wake import Wake
from tarry.simulation.disk import SimulatedDisk


class Subject:
    """A disk, and how its flushes come to their ends."""

    def __init__(self, disk: Disk, flush_events: Callable[[], list[Event]]) -> None:
        self.disk = disk
        self.flush_events = flush_events


@pytest.fixture(params=["os", "simulated"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    if request.param == "simulated":
        disk = SimulatedDisk()
        yield Subject(disk, disk.complete_flushes)
        return
    reactor = Reactor(make_poller())
    wake = Wake()
    reactor.add(wake.read_descriptor, READABLE, wake)
    flusher = Flusher(wake.wake)
    wake.add_collector(flusher.collect)
    yield Subject(OsDisk(str(tmp_path), flusher), lambda: reactor.wait(5_000))
    flusher.close(5.0)
    reactor.close()
    wake.close()


@pytest.fixture
def disk(subject: Subject) -> Disk:
    return subject.disk


def content(disk: Disk, path: str) -> bytes:
    return disk.open(path).read(0, 1 << 20)


def test_an_append_returns_the_position_of_its_first_byte(disk: Disk) -> None:
    file = disk.open("a", create=True)

    assert file.append([b"hello"]) == 0
    assert file.append([b" ", memoryview(b"xworldx")[1:6], b""]) == 5
    assert file.size == 11
    assert file.read(0, 100) == b"hello world"


def test_an_append_of_more_chunks_than_the_system_gathers_at_once_is_whole(disk: Disk) -> None:
    file = disk.open("a", create=True)
    chunks: list[bytes | memoryview] = [f"{i:05d}".encode() for i in range(5_000)]

    file.append(chunks)

    assert file.size == 25_000
    assert file.read(0, 1 << 20) == b"".join(chunks)


def test_a_read_is_shorter_only_at_the_end(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])

    assert file.read(2, 3) == b"234"
    assert file.read(8, 100) == b"89"
    assert file.read(10, 100) == b""
    assert file.read(100, 5) == b""
    assert file.read(3, 0) == b""


def test_a_file_that_is_not_there_is_opened_only_with_create(disk: Disk) -> None:
    with pytest.raises(StorageError, match="a"):
        disk.open("a")
    assert not disk.exists("a")

    disk.open("a", create=True)

    assert disk.exists("a")


def test_create_never_empties_a_file(disk: Disk) -> None:
    disk.open("a", create=True).append([b"kept"])

    file = disk.open("a", create=True)

    assert file.size == 4
    assert file.append([b"!"]) == 4
    assert content(disk, "a") == b"kept!"


def test_truncate_cuts_and_appends_go_on_at_the_new_end(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])

    file.truncate(4)

    assert file.size == 4
    assert file.append([b"x"]) == 4
    assert file.read(0, 100) == b"0123x"


def test_a_closed_or_removed_file_is_still_read_by_who_holds_it(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append([b"content"])

    file.close()
    disk.remove("a")

    assert not disk.exists("a")
    assert file.read(0, 100) == b"content"


def test_paths_are_sorted_and_those_of_directories_end_with_a_slash(disk: Disk) -> None:
    disk.make_directory("t-1")
    disk.make_directory("t-1/inner")
    for name in ("t-1/b", "t-1/a", "zeta", "alpha", "t-1/inner/deep"):
        disk.open(name, create=True)

    assert disk.paths() == ["alpha", "t-1/", "zeta"]
    assert disk.paths("t-1") == ["t-1/a", "t-1/b", "t-1/inner/"]
    assert disk.paths("t-1/") == disk.paths("t-1")
    assert disk.paths("t-1/inner") == ["t-1/inner/deep"]


def test_a_directory_that_is_not_there_has_no_paths_to_tell(disk: Disk) -> None:
    with pytest.raises(StorageError):
        disk.paths("missing")


def test_making_a_directory_that_exists_is_quiet(disk: Disk) -> None:
    disk.make_directory("t-0")
    disk.make_directory("t-0")

    assert disk.exists("t-0")


def test_a_directory_is_not_made_over_a_file_or_without_its_parent(disk: Disk) -> None:
    disk.open("a", create=True)

    with pytest.raises(StorageError):
        disk.make_directory("a")
    with pytest.raises(StorageError):
        disk.make_directory("missing/t-0")
    with pytest.raises(StorageError):
        disk.open("missing/a", create=True)


def test_a_rename_replaces_a_file_and_moves_a_directory(disk: Disk) -> None:
    disk.open("new", create=True).append([b"old content"])
    file = disk.open("tmp", create=True)
    file.append([b"new content"])
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True)

    disk.rename("tmp", "new")
    disk.rename("t-0", "t-0.deleted")

    assert disk.paths() == ["new", "t-0.deleted/"]
    assert content(disk, "new") == b"new content"
    assert disk.paths("t-0.deleted") == ["t-0.deleted/a"]


def test_a_rename_of_what_is_not_there_fails(disk: Disk) -> None:
    with pytest.raises(StorageError):
        disk.rename("missing", "b")


def test_removing_what_is_not_there_is_quiet(disk: Disk) -> None:
    disk.remove("missing")
    disk.begin_remove("missing")

    assert disk.paths() == []


def test_begin_remove_takes_a_whole_tree(subject: Subject) -> None:
    disk = subject.disk
    disk.make_directory("t-0")
    disk.make_directory("t-0/inner")
    disk.open("t-0/a", create=True)
    disk.open("t-0/inner/b", create=True)
    disk.open("c", create=True)

    disk.begin_remove("t-0")
    disk.begin_remove("c")
    # The end of a removal is no event: look until it is done.
    for _ in range(1_000):
        if not disk.exists("t-0") and not disk.exists("c"):
            break
        disk.begin_flush([], [])
        subject.flush_events()

    assert disk.paths() == []


def test_a_flush_ends_as_one_event_with_its_id(subject: Subject) -> None:
    disk = subject.disk
    disk.make_directory("t-0")
    file = disk.open("t-0/a", create=True)
    file.append([b"x"])

    flush_id = disk.begin_flush([file], ["", "t-0"])
    events = subject.flush_events()

    assert [(e.kind, e.flush_id, e.error) for e in events] == [(FLUSHED, flush_id, "")]


def test_each_flush_has_its_own_id_and_end(subject: Subject) -> None:
    disk = subject.disk
    files = [disk.open(f"f{i:02d}", create=True) for i in range(40)]
    for file in files:
        file.append([b"x"])

    begun = [
        disk.begin_flush(files, [""]),
        disk.begin_flush(files[:1], []),
        disk.begin_flush([], []),
    ]
    ended: list[int] = []
    while len(ended) < 3:
        ended += [event.flush_id for event in subject.flush_events()]

    assert sorted(ended) == sorted(begun)
    assert len(set(begun)) == 3


def test_a_file_may_be_closed_renamed_and_removed_while_it_is_flushed(subject: Subject) -> None:
    disk = subject.disk
    disk.make_directory("t-0")
    file = disk.open("t-0/a", create=True)
    file.append([b"x"])

    disk.begin_flush([file], ["t-0"])
    file.close()
    disk.rename("t-0", "t-0.deleted")
    disk.begin_remove("t-0.deleted")

    assert [event.error for event in subject.flush_events()] == [""]


def test_a_flush_of_a_directory_that_is_gone_fails_when_it_is_begun(disk: Disk) -> None:
    with pytest.raises(StorageError):
        disk.begin_flush([], ["missing"])
    with pytest.raises(StorageError):
        disk.flush([], ["missing"])


def test_a_waiting_flush_leaves_no_event(subject: Subject) -> None:
    disk = subject.disk
    files = [disk.open(f"f{i:02d}", create=True) for i in range(20)]

    disk.flush(files, [""])
    disk.flush(files[:1], [])
    flush_id = disk.begin_flush([], [])

    assert [event.flush_id for event in subject.flush_events()] == [flush_id]


def test_there_is_free_space(disk: Disk) -> None:
    assert 0 < disk.free_bytes() <= disk.total_bytes()
