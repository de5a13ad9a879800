"""Streams that are closed, and arguments that are no text: a sentence, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.support.patience import PATIENCE_S

NOWHERE = ["-b", "127.0.0.1:1", "-m", "50ms"]


def run_tarry(*arguments: str | bytes, closed: str = "") -> subprocess.CompletedProcess[bytes]:
    """A real process of `tarry`; `closed` is what a shell would write, such as `>&-`."""
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh"] if closed else []
    return subprocess.run(
        [*shell, sys.executable, "-m", "tarry", *arguments],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TARRY_PURE": "1"},
    )


@pytest.mark.parametrize(
    "command", [["version"], ["--help"], ["topics", "list", "-h"]], ids=" ".join
)
def test_a_closed_stdout_is_one_sentence(command: list[str]) -> None:
    ended = run_tarry(*command, closed=">&-")

    assert ended.stderr == b"tarry: cannot write the output: stdout is closed\n"
    assert ended.returncode == 1


def test_a_closed_stderr_changes_nothing_else() -> None:
    ended = run_tarry("topics", "list", *NOWHERE, closed="2>&-")

    assert ended.returncode == 1
    assert ended.stdout == b""


def test_a_closed_stdin_cannot_say_yes() -> None:
    ended = run_tarry("topics", "delete", "a", *NOWHERE, closed="<&-")

    assert ended.returncode == 2
    assert ended.stderr.startswith(b"tarry: cannot ask without a terminal: Delete a with all")


@pytest.mark.parametrize(
    "line",
    [
        ["topics", "describe", b"\xff"],
        ["topics", "create", "a", "-c", b"retention.ms=\xff"],
        ["groups", "describe", b"gr\xfcn"],
        ["configs", "get", "--topic", b"\xff"],
    ],
    ids=lambda line: str(line[0]),
)
def test_a_name_that_is_no_utf8_is_wrong_usage(line: list[str | bytes]) -> None:
    ended = run_tarry(*line, *NOWHERE)

    assert ended.returncode == 2
    assert b"is not UTF-8" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_text_that_the_terminal_has_no_letters_for_is_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    ended = run_tarry("timer", "picture", "--help")

    assert ended.returncode == 0
    assert ended.stderr == b""


class Screen:
    """A terminal as `StatusLine` sees it."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def waiting_at(clock: Clock) -> Callable[[str | None], None]:
    from tarry.cli.status_line import Waiting

    return Waiting("here:9092", clock).look


def test_trouble_is_told_after_half_a_second_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    look = waiting_at(clock)

    look("refused")
    clock.now = 0.4
    look("refused")
    assert capsys.readouterr().err == ""

    for clock.now in (0.5, 1.0, 7.0):
        look("refused")
    assert capsys.readouterr().err == "tarry: waiting: refused\n"


def test_a_silent_broker_is_told_after_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    look = waiting_at(clock)

    for clock.now in (0.0, 1.9):
        look("")
    assert capsys.readouterr().err == ""

    clock.now = 2.0
    look("")
    assert capsys.readouterr().err == "tarry: waiting: no answer from here:9092 yet\n"


def test_a_wait_that_is_over_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    look = waiting_at(clock)

    look("")
    look(None)
    clock.now = 2.0
    look("")

    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_line_counts_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "24")
    clock = Clock()
    look = waiting_at(clock)

    look("refused")
    clock.now = 1.0
    look("refused")
    assert screen.text == "\r\x1b[Ktarry: waiting (1 s): …"

    look(None)
    assert screen.text.endswith("\r\x1b[K")
