"""Small parts of links: tasks, frames, pauses."""

from __future__ import annotations

import pytest
from tests.support.client.scripted_cluster import seeded_random

from tarry.base.errors import ProtocolViolation
from tarry.base.limits import FRAME_PIECES_MAX
from tarry.link.frames import FrameSplitter
from tarry.link.pauses import backoff_ms
from tarry.link.tasks import Task, Tasks

# --- Tasks


def test_a_task_runs_once_at_its_time() -> None:
    tasks = Tasks(0)
    ran: list[int] = []
    task = Task(ran.append)

    tasks.schedule(task, 100)
    for now_ms in (50, 99, 100, 200):
        tasks.advance(now_ms)

    assert ran == [100]


def test_a_task_that_is_moved_runs_only_at_its_new_time() -> None:
    tasks = Tasks(0)
    ran: list[int] = []
    task = Task(ran.append)

    tasks.schedule(task, 100)
    tasks.schedule(task, 300)
    tasks.advance(200)
    tasks.advance(300)

    assert ran == [300]


def test_a_task_in_the_past_is_due_at_once_and_not_inside_the_caller() -> None:
    tasks = Tasks(1_000)
    ran: list[int] = []
    task = Task(ran.append)

    tasks.schedule(task, 10)
    due_ms = tasks.next_due_ms()
    assert due_ms is not None
    tasks.advance(1_000)

    assert due_ms <= 1_000
    assert ran == [1_000]


def test_a_task_that_another_one_cancels_in_the_same_moment_does_not_run() -> None:
    tasks = Tasks(0)
    ran: list[str] = []
    second = Task(lambda now_ms: ran.append("second"))
    first = Task(lambda now_ms: tasks.cancel(second))

    tasks.schedule(first, 10)
    tasks.schedule(second, 10)
    tasks.advance(20)

    assert ran == []


def test_a_task_is_only_ever_moved_earlier_on_request() -> None:
    tasks = Tasks(0)
    ran: list[int] = []
    task = Task(ran.append)

    tasks.schedule_earlier(task, 100)
    tasks.schedule_earlier(task, 200)
    tasks.schedule_earlier(task, 50)
    tasks.advance(50)

    assert ran == [50]


# --- Frames


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 100])
def test_frames_come_out_whole_however_the_stream_is_cut(step: int) -> None:
    contents = [b"abcd", b"x" * 50, b"1234567", b"zzzz"]
    stream = b"".join(frame(content) for content in contents)
    splitter = FrameSplitter()

    found: list[bytes] = []
    for start in range(0, len(stream), step):
        found += splitter.feed(stream[start : start + step])

    assert found == contents


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03", b"\x7f\xff\xff\xff"])
def test_a_length_that_no_answer_has_is_refused(head: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="not a Kafka port"):
        FrameSplitter().feed(head)


# --- Back-off


def test_pauses_double_up_to_their_limit_give_or_take_a_fifth() -> None:
    random = seeded_random()

    for failures, middle in ((1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (60, 1_000)):
        pauses = [backoff_ms(100, 1_000, failures, random) for _ in range(200)]
        assert min(pauses) >= middle * 8 // 10
        assert max(pauses) <= middle * 12 // 10
        assert len(set(pauses)) > 10


def test_a_frame_that_trickles_is_kept_in_few_pieces() -> None:
    """An object of a byte weighs fifty: 100 MB sent so would become 5 GB."""
    splitter = FrameSplitter()
    splitter.feed((1 << 20).to_bytes(4, "big"))
    most = 0
    frames: list[bytes] = []
    for number in range(1 << 20):
        frames += splitter.feed(bytes([number & 0xFF]))
        if number % 4_096 == 0:
            most = max(most, len(splitter._parts))

    assert most <= FRAME_PIECES_MAX + (1 << 20) // FRAME_PIECES_MAX
    assert frames == [bytes(range(256)) * 4_096]
