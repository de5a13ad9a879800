"""Locks of files, between processes and between descriptors, which are the same to the system."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarry.spark import file_locks
from tarry.spark.file_locks import LockHeld, held

HOLDER = """\
import sys
from pathlib import Path
from tarry.spark.file_locks import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_of_two_processes_has_the_lock_and_the_other_is_told_whose_it_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockHeld) as refused, held(path):
            pass
        assert refused.value.owner == str(holder.pid)
        holder.kill()
        holder.wait()

        with held(path) as has_locks:
            assert has_locks
            assert path.read_text() == str(os.getpid())


def test_who_waits_gets_the_lock_when_the_other_one_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(file_locks, "TELL_SECONDS", 0.0)
    other = held(path)
    other.__enter__()
    attempts: list[float] = []

    def pause(seconds: float) -> None:
        attempts.append(seconds)
        if len(attempts) == 3:
            other.__exit__(None, None, None)

    monkeypatch.setattr(file_locks.time, "sleep", pause)
    with held(path, 60.0):
        assert len(attempts) == 3

    (told,) = caplog.messages
    assert told == f"waiting for process {os.getpid()}, which has the lock of {path}"


@pytest.mark.parametrize("number", file_locks.NO_LOCKS)
def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(file_locks.fcntl, "flock", refuse)
    with held(tmp_path / "lock") as has_locks:
        assert not has_locks


def test_a_lock_that_smb_denies_is_held_by_somebody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(file_locks.fcntl, "flock", deny)
    with pytest.raises(LockHeld) as refused, held(tmp_path / "lock"):
        pass

    assert refused.value.owner == "?"
