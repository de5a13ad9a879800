"""Help: what a command's `--help` shows is what its author wrote, example by example."""

from __future__ import annotations

from importlib import import_module

import click
import pytest

from tarry.cli import main
from tarry.cli.configs import configs
from tarry.cli.groups import groups
from tarry.cli.topics import topics

NAMES = [
    [],
    *([name] for name in main.COMMANDS),
    *(["topics", name] for name in topics.commands),
    *(["groups", name] for name in groups.commands),
    *(["configs", name] for name in configs.commands),
    ["timer", "picture"],
]


def command_of(names: list[str]) -> click.Command:
    command: click.Command = main.tarry
    for name in names:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def help_of(names: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main.run([*names, "--help"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_every_example_stands_on_its_own_line_as_it_was_written(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    written = (command_of(names).epilog or "").replace("\b", "").strip().splitlines()

    shown = help_of(names, capsys)

    assert "Examples:" in written
    for line in written:
        # The help indents what stands below its usage.
        assert ("  " + line).rstrip() in shown


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_help_shows_no_marks_of_the_library(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(help_of(names, capsys))

    assert "\\b" not in text
    assert "\b" not in text
    assert "\\\\n" not in text


@pytest.mark.parametrize("name", ["topics", "groups", "configs"])
def test_a_group_of_commands_shows_the_whole_sentence_of_each(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    group = command_of([name])
    assert isinstance(group, click.Group)

    shown = " ".join(" ".join(help_of([name], capsys)).split())

    for command in group.commands.values():
        assert command.get_short_help_str(200) in shown


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_every_option_and_command_says_what_it_does(names: list[str]) -> None:
    command = command_of(names)

    assert command.get_short_help_str()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_list_of_commands_says_what_the_command_itself_says(name: str) -> None:
    module, _, attribute = main.COMMANDS[name][0].partition(":")
    command = getattr(import_module(module), attribute)

    assert main.COMMANDS[name][1] == command.get_short_help_str(limit=200)
