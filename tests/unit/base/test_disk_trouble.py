"""What the disk refuses: told at once, summed up by the minute, and told when it is over."""

from __future__ import annotations

import logging

import pytest

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.errors import DiskFull, StorageError
from tarry.simulation.disk import SimulatedDisk


@pytest.fixture
def trouble() -> DiskTrouble:
    return DiskTrouble(SimulatedDisk(capacity_bytes=0), logging.getLogger("tarry.test"), "/data")


def test_a_full_disk_is_told_at_once_with_its_directory_and_what_to_do(
    trouble: DiskTrouble, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.report("write to a-0 failed", DiskFull("a-0/0.log: No space left on device"))

    (line,) = caplog.messages
    assert line.startswith("disk full: /data (0 bytes free); write to a-0 failed: a-0/0.log: No ")
    assert "Free room on that file system: no restart is needed" in line


def test_further_refusals_are_one_line_a_minute_with_their_number(
    trouble: DiskTrouble, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(500):
        trouble.report(f"write to a-{number} failed", DiskFull("no space"))
    caplog.clear()

    trouble.flush()
    for _ in range(3):
        trouble.report("write to b-0 failed", DiskFull("no space"))
    trouble.flush()

    assert caplog.messages == [
        "disk full: /data (0 bytes free now); it refused 499 times more in the last minute, the "
        "last: write to a-499 failed: no space",
        "disk full: /data (0 bytes free now); it refused 3 times more in the last minute, the "
        "last: write to b-0 failed: no space",
    ]


def test_after_a_quiet_minute_it_is_over_and_the_next_refusal_is_told_at_once(
    trouble: DiskTrouble, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    trouble.report("write to a-0 failed", DiskFull("no space"))
    trouble.flush()
    caplog.clear()

    for _ in range(5):
        trouble.flush()
    over = caplog.messages.copy()
    caplog.clear()
    trouble.report("write to a-0 failed", DiskFull("no space"))

    assert over == ["the disk has refused nothing for a minute; refusals before: 1"]
    assert caplog.messages[0].startswith("disk full: ")


def test_a_failing_disk_is_not_called_full(
    trouble: DiskTrouble, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        trouble.report("write to a-0 failed", StorageError("a-0/0.log: Input/output error"))
    trouble.flush()

    assert caplog.messages == [
        "the disk failed: write to a-0 failed: a-0/0.log: Input/output error",
        "the disk failed; it refused 2 times more in the last minute, the last: "
        "write to a-0 failed: a-0/0.log: Input/output error",
    ]
