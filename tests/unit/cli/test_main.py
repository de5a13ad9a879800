"""The entry point: which commands there are, and how a failure ends."""

from __future__ import annotations

import sys

import click
import pytest

import tarry
from tarry.base.errors import InvalidSetting, StorageError
from tarry.cli import main
from tarry.runtime.refusal import StartRefused


def raising(error: BaseException) -> click.Command:
    @click.command()
    def fail() -> None:
        raise error

    return fail


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """`tarry fail` runs `failing_command` of this module."""
    monkeypatch.setitem(main.COMMANDS, "fail", (f"{__name__}:failing_command", "Fail."))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    return monkeypatch


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (InvalidSetting("a is no setting"), 2, "tarry: a is no setting\n"),
        (StartRefused("the port is taken"), 3, "tarry: the port is taken\n"),
        (StorageError("a: no space left"), 1, "tarry: a: no space left\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.UsageError("no such option"), 2, "Usage: tarry"),
        (SystemExit(4), 4, ""),
    ],
)
def test_a_failure_ends_as_a_sentence_and_a_code(
    failing: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    sentence: str,
) -> None:
    failing.setattr(sys.modules[__name__], "failing_command", raising(error), raising=False)

    assert main.run(["fail"]) == code

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(sentence)
    assert "Traceback" not in captured.err


def test_windows_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["version"], system="nt") == 1

    assert capsys.readouterr().err == (
        "tarry: Tarry runs on Linux and macOS; on Windows use it inside WSL 2\n"
    )


def test_help_names_every_command_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0

    out = capsys.readouterr().out
    for name, (_, sentence) in main.COMMANDS.items():
        assert f"  {name}" in out
        # Long ones are wrapped.
        assert sentence in " ".join(out.split())
    assert "echo hello | tarry produce greetings" in out


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["serv"]) == 2

    assert "no such command 'serv'; did you mean 'serve'?" in capsys.readouterr().err


def test_an_unknown_command_that_is_like_no_other_gets_no_guess(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["xyzzy"]) == 2

    error = capsys.readouterr().err
    assert "No such command 'xyzzy'" in error
    assert "did you mean" not in error


def test_the_version_alone_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0

    assert capsys.readouterr().out == f"tarry {tarry.__version__}\n"


def test_version_tells_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["version"]) == 0

    out = capsys.readouterr().out
    assert out.startswith(f"tarry {tarry.__version__}, {tarry.FORM} ")
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in out


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([name, "--help"]) == 0

    assert capsys.readouterr().out.startswith(f"Usage: tarry {name}")
