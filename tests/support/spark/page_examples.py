"""Examples of the pages about Spark: each one run, beside what its page says that it prints."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.testing import CliRunner

from tarry.cli.main import tarry

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
HOW_TO: Final = DOCS / "how-to"
ADDRESS: Final = "127.0.0.1:9092"
FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Name of a file in the prose before the block that is its text.
FILE: Final = re.compile(r"`([\w-]+\.(?:json|py|toml))`")

# Commands that start a Spark, unless they are to do the work in their own process.
OF_SPARK: Final = re.compile(r"tarry spark (?:archive|backfill|compact|replay|run) ")

# Lines that a command adds on a machine so busy that Spark gave up one of its own processes.
RESTARTS: Final = re.compile(r", \d+ restarts?$", re.MULTILINE)


class Ran(NamedTuple):
    """Example that ran, what it printed, and what the page says below it."""

    text: str
    printed: str
    expected: str


def programs_of(page: str, wanted: str = "python") -> list[str]:
    """Return the programs of a page in one language, block by block."""
    blocks = FENCED.findall((HOW_TO / page).read_text(encoding="utf-8"))
    return [text for kind, text in blocks if kind == wanted]


def commands_of(page: str) -> list[str]:
    """Return the lines of a page's blocks for a shell: those without a mark, and those of `sh`."""
    blocks = FENCED.findall((HOW_TO / page).read_text(encoding="utf-8"))
    return [
        line
        for kind, text in blocks
        if kind in ("", "sh")
        for line in text.replace("\\\n", " ").splitlines()
    ]


def run_examples(page: str, bootstrap: str) -> list[tuple[str, str]]:
    """What each example of a page prints, and what stands below it, from top to bottom."""
    blocks = FENCED.findall((HOW_TO / page).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran: list[tuple[str, str]] = []
    for place, (kind, text) in enumerate(blocks):
        if kind == "python":
            printed = run_python(text, bootstrap, namespace)
            follows, expected = blocks[place + 1]
            ran.append((printed, expected if follows == "text" else ""))
    return ran


def walk_page(page: Path, bootstrap: str, directory: Path) -> list[Ran]:
    """Do what a page says, from top to bottom, in a directory that is the current one.

    A block of JSON or TOML is saved under the name that the prose before it gives, and so is one
    of Python where the prose right above it names a file; other Python is run.  In a block marked
    `sh` commands of `tarry`, and `python FILE`, are run in this process, so that they share its
    Spark.
    """
    page_text = page.read_text(encoding="utf-8")
    blocks = list(FENCED.finditer(page_text))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran: list[Ran] = []
    for place, block in enumerate(blocks):
        kind, text = block.groups()
        above = page_text[blocks[place - 1].end() if place else 0 : block.start()]
        names = [name for name in FILE.findall(above) if name.endswith((f".{kind}", ".py"))]
        if kind in ("json", "toml", "python") and names:
            (directory / names[-1]).write_text(text.replace(ADDRESS, bootstrap))
            continue
        if kind == "python":
            printed = run_python(text, bootstrap, namespace)
        elif kind == "sh":
            printed = "".join(map(run_line, text.replace("\\\n", " ").splitlines()))
        else:
            continue
        after = blocks[place + 1].groups() if place + 1 < len(blocks) else ("", "")
        ran.append(Ran(text, printed, after[1] if after[0] == "text" else ""))
    return ran


def blocks_of(page: str, kind: str) -> list[str]:
    """Return a page's blocks of a kind."""
    blocks = FENCED.findall((HOW_TO / page).read_text(encoding="utf-8"))
    return [text for found, text in blocks if found == kind]


def parse_command(words: list[str]) -> dict[str, Any]:
    """Parse a command of `tarry` without running it; return its arguments and options.

    Raises click.ClickException where there is no such command or option.
    """
    program, *left = words
    assert Path(program).name == "tarry"
    command: click.Command = tarry
    while isinstance(command, click.Group):
        name = left.pop(0)
        found = command.get_command(click.Context(command), name)
        if found is None:
            raise click.UsageError(f"there is no command {name}")
        command = found
    with command.make_context(command.name, left) as context:
        return dict(context.params)


def needs_spark(line: str) -> bool:
    """Tell whether a command starts a Spark."""
    return OF_SPARK.match(line) is not None and "--local" not in line


def run_python(text: str, bootstrap: str, namespace: dict[str, Any]) -> str:
    """Run a block of Python; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(text.replace(ADDRESS, bootstrap), namespace)
    return printed.getvalue()


def run_line(line: str) -> str:
    """Run a line of a shell, if it is one that can be run here; return what it prints."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["python"]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(words[1], run_name="__main__")
        return printed.getvalue()
    if words[:1] == ["tarry"] and words[1] != "serve":
        result = CliRunner().invoke(tarry, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}{result.exception!r}"
        return RESTARTS.sub("", result.stdout)
    return ""
