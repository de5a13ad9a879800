"""Outlet: nothing is lost, nothing is stuck, whoever reads."""

from __future__ import annotations

import io
import os

import pytest

from tarry.cli import outlet as outlet_module
from tarry.cli.outlet import Outlet


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet_module, "IDLE_SECONDS", 0.001)


def test_a_reader_that_is_slow_gets_everything_while_other_work_is_done() -> None:
    reading, writing = os.pipe()
    sent = bytes(range(256)) * 2_000
    got: list[bytes] = []

    def read_a_little() -> None:
        got.append(os.read(reading, 10_000))

    with os.fdopen(writing, "wb") as output, os.fdopen(reading, "rb") as rest:
        went_through = Outlet(output, read_a_little).write(sent)
        output.close()
        got.append(rest.read())

    assert not went_through
    assert len(got) > 10
    assert b"".join(got) == sent


def test_a_reader_that_keeps_up_costs_no_other_work(tmp_path: object) -> None:
    reading, writing = os.pipe()

    with os.fdopen(writing, "wb") as output, os.fdopen(reading, "rb") as rest:
        went_through = Outlet(output, lambda: pytest.fail("nobody waited")).write(b"x" * 10_000)
        output.close()

        assert went_through
        assert rest.read() == b"x" * 10_000


def test_what_was_written_before_comes_first() -> None:
    reading, writing = os.pipe()

    with os.fdopen(writing, "wb") as output, os.fdopen(reading, "rb") as rest:
        output.write(b"before ")
        Outlet(output, lambda: None).write(b"after")
        output.close()

        assert rest.read() == b"before after"


def test_a_reader_that_has_gone_is_a_broken_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "wb") as output, pytest.raises(BrokenPipeError):
        Outlet(output, lambda: None).write(b"x")


def test_what_is_no_file_of_the_system_is_written_to_as_well() -> None:
    output = io.BytesIO()

    assert Outlet(output, lambda: None).write(b"x")
    assert output.getvalue() == b"x"
