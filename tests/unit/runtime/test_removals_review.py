"""Removals that come late take what was meant, not what has its name by then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarry.runtime import flusher as flusher_module
from tarry.runtime.files import OsDisk
from tarry.runtime.flusher import Flusher


@pytest.fixture
def may_go_on(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The thread that removes waits for it before the file `slow`."""
    event = threading.Event()
    remove = flusher_module._remove

    def waiting_remove(path: str) -> None:
        if path.endswith("slow"):
            assert event.wait(10)
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
