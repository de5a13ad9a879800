"""Tables: columns where there is room, blocks in a narrow terminal, colours on request."""

from __future__ import annotations

import io
import sys

import click
import pytest

from tarry.cli.tables import SizeCell, bad, complain, print_table, printable, strong

ROWS = [["orders", 3, SizeCell("8.4 kB")], ["refunds", 12, "?"]]
TITLES = ["topic", "partitions", "size"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> Terminal:
    """Made in the test itself: the capturing of a test begins behind its fixtures."""
    made = Terminal()
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    return made


def test_numbers_and_sizes_stand_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(TITLES, ROWS)

    assert capsys.readouterr().out == (
        "topic    partitions    size\norders            3  8.4 kB\nrefunds          12       ?\n"
    )


def test_a_table_that_fits_the_terminal_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, 40)

    print_table(TITLES, ROWS)

    assert terminal.getvalue().splitlines()[0] == "topic    partitions    size"


def test_a_table_that_does_not_fit_is_printed_as_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, 20)

    print_table(TITLES, ROWS)

    assert terminal.getvalue() == (
        "topic       orders\npartitions  3\nsize        8.4 kB\n\n"
        "topic       refunds\npartitions  12\nsize        ?\n"
    )


def test_into_a_pipe_a_wide_table_stays_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")

    print_table(TITLES, ROWS)

    assert len(capsys.readouterr().out.splitlines()) == 3


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    a_terminal(monkeypatch, 40)
    plain = (strong("a"), bad("b"))
    monkeypatch.delenv("NO_COLOR")
    coloured = (strong("a"), bad("b"))
    monkeypatch.setenv("TERM", "dumb")
    dumb = (strong("a"), bad("b"))

    assert plain == dumb == ("a", "b")
    assert coloured == ("\x1b[1ma\x1b[0m", "\x1b[31m\x1b[1mb\x1b[0m")


def test_colours_do_not_move_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, 40)
    monkeypatch.delenv("NO_COLOR")

    print_table(["a", "b"], [[bad("x"), "1"], ["long", "2"]])

    assert terminal.getvalue().splitlines()[1:] == ["\x1b[31m\x1b[1mx\x1b[0m     1", "long  2"]


# Each would be obeyed: colour, title, clear, the same in eight bits, a turned line, a new line.
HOSTILE = "\x1b[31mred\x1b]0;t\x07\x1b[2J\x9b2J\u202e\n\r\t\x7f"
SAID = "\\x1b[31mred\\x1b]0;t\\x07\\x1b[2J\\x9b2J\\u202e\\n\\r\\t\\x7f"


@pytest.mark.parametrize("columns", [200, 20])
@pytest.mark.parametrize("colours", [True, False])
def test_a_terminal_obeys_no_name_in_a_table(
    monkeypatch: pytest.MonkeyPatch, columns: int, colours: bool
) -> None:
    terminal = a_terminal(monkeypatch, columns)
    if colours:
        monkeypatch.delenv("NO_COLOR")

    print_table(["group", "state"], [[HOSTILE, bad(HOSTILE)], ["fine", "naïve ✓"]])

    shown = click.unstyle(terminal.getvalue()) if colours else terminal.getvalue()
    assert shown.count(SAID) == 2
    assert not {*HOSTILE} & {*shown} - {*SAID, "\n"}
    assert "naïve ✓" in shown


def test_a_terminal_obeys_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    complain(f"it is\n\tof two lines: {HOSTILE}")

    assert terminal.getvalue().startswith("tarry: it is\n\tof two lines: \\x1b[31mred\\x1b]0;t")
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\x7f"} & {*terminal.getvalue()}


def test_a_pipe_gets_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert printable(HOSTILE) == HOSTILE

    complain("\r\x07")

    assert capsys.readouterr().err == "tarry: \r\x07\n"
