"""Tree of the commands of `tarry`, as man pages and the reference page tell of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import click

from tarry.cli import main

EXIT_CODES: Final = (
    ("0", "Done; what was checked is well."),
    (
        "1",
        "A broker refused the request or did not answer in time, a check failed (damage, a lag "
        "above the limit), or the output could not be written.",
    ),
    ("2", "Wrong usage: nothing was done."),
    ("3", "`tarry serve`: the broker could not start."),
    ("130", "Interrupted by Ctrl-C."),
    ("143", "Terminated by SIGTERM."),
)

VARIABLES: Final = (
    ("TARRY_BOOTSTRAP_SERVERS", "Addresses of the cluster: host:port,host:port."),
    ("TARRY_PROFILE", "Profile that is used where no --profile is given."),
    ("TARRY_PROFILES", "Path of the file with the profiles."),
    ("TARRY_CONFIG", "`tarry serve`: path of its properties file, as --config."),
    ("XDG_CONFIG_HOME", "Where tarry/config.toml is looked for (default: ~/.config)."),
    ("NO_COLOR", "No colours on terminals."),
    ("TARRY_PURE", "1 runs the interpreted form of Tarry's hot modules."),
)


class Block(NamedTuple):
    """Part of an epilog: lines below a title, as they are to be shown."""

    title: str
    lines: list[str]


class Entry(NamedTuple):
    """Command with the texts of its help."""

    path: str
    command: click.Command
    context: click.Context

    @property
    def usage(self) -> str:
        return " ".join([self.path, *self.command.collect_usage_pieces(self.context)])

    @property
    def sentence(self) -> str:
        return self.command.get_short_help_str(200)

    @property
    def paragraphs(self) -> list[str]:
        """The help, a paragraph a line."""
        text = inspect.cleandoc(self.command.help or "").split("\f")[0]
        return [" ".join(part.split()) for part in text.split("\n\n")]

    @property
    def options(self) -> list[tuple[str, str]]:
        """Options: how each is written, and what it does."""
        found = []
        for parameter in self.command.get_params(self.context):
            record = parameter.get_help_record(self.context)
            # An argument is in the usage already, and has no words of its own.
            if record is not None and record[1]:
                found.append(record)
        return found

    @property
    def blocks(self) -> list[Block]:
        """The epilog: examples, letters of formats and the like."""
        found = []
        for part in (self.command.epilog or "").split("\b\n"):
            lines = part.rstrip().splitlines()
            if not "".join(lines).strip():
                continue
            is_titled = lines[0].rstrip().endswith(":") and len(lines) > 1
            title = lines[0].rstrip(": ") if is_titled else ""
            found.append(Block(title, lines[1:] if is_titled else lines))
        return found


def entries() -> Iterator[Entry]:
    """Return `tarry` and all commands below it, in the order of its help."""
    # The width of the terminal must not change what is written.
    width = {"terminal_width": 100, "max_content_width": 100}
    settings: dict[str, Any] = {**main.tarry.context_settings, **width}
    context = click.Context(main.tarry, info_name="tarry", **settings)
    yield from _below("tarry", main.tarry, context)


def _below(path: str, command: click.Command, context: click.Context) -> Iterator[Entry]:
    yield Entry(path, command, context)
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None, name
        inner = click.Context(found, info_name=name, parent=context)
        yield from _below(f"{path} {name}", found, inner)
