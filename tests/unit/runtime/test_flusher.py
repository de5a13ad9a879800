"""File workers: one end a flush, one error a flush, and nothing is tried again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.support.patience import PATIENCE_S

from tarry.base.doors import Event
from tarry.runtime.flusher import WORKERS_MAX, Flusher


class Opened:
    """Something with a descriptor, which these workers do not touch."""

    def __init__(self, number: int) -> None:
        self.path = f"file-{number}"
        self.descriptor = number


class Device:
    """Takes the place of fdatasync: notes what it is asked, fails or stands still if told to."""

    def __init__(self) -> None:
        self.flushed: list[int] = []
        self.failing: set[int] = set()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.at_once = 0
        self.at_once_max = 0
        self.lock = threading.Lock()

    def flush(self, descriptor: int) -> None:
        with self.lock:
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
            self.flushed.append(descriptor)
        assert self.may_go_on.wait(PATIENCE_S)
        with self.lock:
            self.at_once -= 1
        if descriptor in self.failing:
            raise OSError(5, f"broken-{descriptor}")


class Subject:
    def __init__(self) -> None:
        self.device = Device()
        self.woken = threading.Semaphore(0)
        self.flusher = Flusher(self.woken.release, self.device.flush)

    def ends(self, count: int = 1) -> list[tuple[int, str]]:
        events: list[Event] = []
        while len(events) < count:
            assert self.woken.acquire(timeout=PATIENCE_S)
            self.flusher.collect(events)
        return [(event.flush_id, event.error) for event in events]


@pytest.fixture
def subject() -> Iterator[Subject]:
    subject = Subject()
    yield subject
    subject.device.may_go_on.set()
    subject.flusher.close(10.0)


def opened(count: int) -> list[Opened]:
    return [Opened(number) for number in range(count)]


def test_a_flush_of_few_files_is_one_workers_in_their_order(subject: Subject) -> None:
    flush_id = subject.flusher.begin(opened(3), [Opened(9)])

    assert subject.ends() == [(flush_id, "")]
    assert subject.device.flushed == [0, 1, 2, 9]


def test_a_flush_of_many_files_is_shared_and_ends_once(subject: Subject) -> None:
    subject.device.may_go_on.clear()
    flush_id = subject.flusher.begin(opened(100), [])
    while subject.device.at_once < WORKERS_MAX:
        threading.Event().wait(0.001)
    subject.device.may_go_on.set()

    assert subject.ends() == [(flush_id, "")]
    assert sorted(subject.device.flushed) == list(range(100))
    assert subject.device.at_once_max == WORKERS_MAX


def test_a_flush_does_not_hold_the_caller(subject: Subject) -> None:
    subject.device.may_go_on.clear()

    subject.flusher.begin(opened(1), [])
    events: list[Event] = []
    subject.flusher.collect(events)

    assert events == []


def test_a_failed_flush_is_told_once_with_its_first_error_and_not_retried(
    subject: Subject,
) -> None:
    subject.device.failing = {1, 2}

    flush_id = subject.flusher.begin(opened(4), [])

    assert subject.ends() == [(flush_id, "file-1: broken-1")]
    assert subject.device.flushed == [0, 1, 2, 3]


def test_an_error_in_any_part_of_a_shared_flush_fails_it(subject: Subject) -> None:
    subject.device.failing = {77}

    flush_id = subject.flusher.begin(opened(100), [])

    assert subject.ends() == [(flush_id, "file-77: broken-77")]


def test_flushes_begun_together_end_each_by_itself(subject: Subject) -> None:
    begun = [subject.flusher.begin(opened(1), []) for _ in range(10)]

    assert sorted(subject.ends(10)) == [(flush_id, "") for flush_id in begun]


@pytest.mark.parametrize("count", [1, 50])
def test_a_waiting_flush_returns_what_went_wrong(subject: Subject, count: int) -> None:
    assert subject.flusher.flush(opened(count), []) == ""

    subject.device.failing = {0}

    assert subject.flusher.flush(opened(count), []) == "file-0: broken-0"
    assert not subject.woken.acquire(blocking=False)


def test_closing_waits_no_longer_than_it_may(subject: Subject) -> None:
    subject.device.may_go_on.clear()
    subject.flusher.begin(opened(1), [])

    subject.flusher.close(0.01)

    assert subject.device.at_once <= 1


def test_what_cannot_be_removed_is_a_line_in_the_log(
    subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    subject.flusher.begin_remove("/proc/self/status")
    subject.flusher.close(5.0)

    assert "/proc/self/status cannot be removed" in caplog.text
