"""Lines through a pipe that nobody reads, or reads again, or has closed."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator

import pytest
from tests.support.patience import PATIENCE_S

from tarry.runtime.log_lines import JsonFormatter, QueueHandler, TextFormatter
from tarry.runtime.log_writer import LogWriter

# Seconds after which a test gives up on a thread that should be at work.
PATIENCE = PATIENCE_S


class Pipe:
    """A pipe whose writing end the writer has, and whose reading end is the test's."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.writers: list[LogWriter] = []

    def writer(self, **limits: int) -> LogWriter:
        """A writer to this pipe."""
        made = LogWriter(self.writing, **limits)
        self.writers.append(made)
        return made

    def close_reading(self) -> None:
        os.close(self.reading)
        self.reading = -1

    def close(self) -> None:
        """Close both ends; the threads have ended their writes by then."""
        if self.reading >= 0:
            self.close_reading()
        for writer in self.writers:
            assert writer.flush(PATIENCE)
        os.close(self.writing)

    def fill(self) -> int:
        """Fill it until it takes no byte more; the number of bytes."""
        os.set_blocking(self.writing, False)
        size = 0
        try:
            while True:
                size += os.write(self.writing, b"x" * 1_000)
        except BlockingIOError:
            pass
        try:
            while True:
                size += os.write(self.writing, b"x")
        except BlockingIOError:
            pass
        os.set_blocking(self.writing, True)
        return size

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(self.reading, size - len(data))
        return data


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def record(message: str, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("tarry.broker", level, "", 0, message, (), None)


def handler_of(writer: LogWriter, formatter: logging.Formatter | None = None) -> QueueHandler:
    handler = QueueHandler(writer)
    handler.setFormatter(formatter or TextFormatter())
    return handler


def test_lines_come_in_the_order_in_which_they_were_offered(pipe: Pipe) -> None:
    writer = pipe.writer()
    lines = [b"line %d\n" % number for number in range(2_000)]

    assert all(writer.offer(line) for line in lines)

    assert pipe.read(sum(map(len, lines))) == b"".join(lines)


def test_a_full_pipe_holds_up_nobody_and_what_has_no_room_is_dropped(pipe: Pipe) -> None:
    pipe.fill()
    writer = pipe.writer(bytes_max=1_000)

    taken = [writer.offer(b"x" * 99 + b"\n") for _ in range(15)]

    assert taken == [True] * 10 + [False] * 5


def test_the_next_line_after_a_gap_says_how_many_lines_are_missing(pipe: Pipe) -> None:
    filled = pipe.fill()
    writer = pipe.writer(bytes_max=2_000)
    handler = handler_of(writer, JsonFormatter())
    offered = 0
    while writer.offer(b"y" * 99 + b"\n"):
        offered += 1
    handler.emit(record("lost"))
    pipe.read(filled + offered * 100)
    assert writer.flush(PATIENCE)

    handler.emit(record("heard"))

    assert writer.flush(PATIENCE)
    gap, heard = [json.loads(line) for line in os.read(pipe.reading, 10_000).splitlines()]
    assert gap["message"].startswith("2 lines of the log were dropped")
    assert gap["level"] == "warning"
    assert heard["message"] == "heard"


def test_no_gap_is_told_twice(pipe: Pipe) -> None:
    writer = pipe.writer(bytes_max=10)
    assert not writer.offer(b"longer than the queue\n")

    assert writer.take_dropped(5) == 1
    assert writer.take_dropped(5) == 0


def test_a_gap_is_kept_until_there_is_room_to_tell_of_it(pipe: Pipe) -> None:
    writer = pipe.writer(bytes_max=10)
    assert not writer.offer(b"longer than the queue\n")

    assert writer.take_dropped(11) == 0
    assert writer.take_dropped(10) == 1


def test_a_critical_line_is_written_before_the_call_returns(pipe: Pipe) -> None:
    handler = handler_of(pipe.writer())

    handler.emit(record("the disk is gone", logging.CRITICAL))

    os.set_blocking(pipe.reading, False)
    assert b"CRITICAL tarry.broker: the disk is gone\n" in os.read(pipe.reading, 1_000)


def test_a_flush_gives_up_on_a_pipe_that_nobody_reads(pipe: Pipe) -> None:
    pipe.fill()
    writer = pipe.writer()
    writer.offer(b"line\n")

    assert not writer.flush(0.01)


def test_a_reader_that_is_gone_loses_lines_and_stops_nobody(pipe: Pipe) -> None:
    pipe.close_reading()
    writer = pipe.writer()

    assert writer.offer(b"to nobody\n")
    assert writer.flush(PATIENCE)
    assert writer.offer(b"still to nobody\n")
    assert writer.flush(PATIENCE)


def test_a_descriptor_that_another_program_made_non_blocking_gets_every_line(pipe: Pipe) -> None:
    filled = pipe.fill()
    os.set_blocking(pipe.writing, False)
    writer = pipe.writer()

    writer.offer(b"line\n")

    assert pipe.read(filled + 5).endswith(b"xline\n")


def test_a_line_for_a_person_has_neither_time_nor_level(pipe: Pipe) -> None:
    handler_of(pipe.writer(), JsonFormatter()).tell("tarry: the disk is gone")

    os.set_blocking(pipe.reading, False)
    assert os.read(pipe.reading, 1_000) == b"tarry: the disk is gone\n"
