"""Output that nobody can take: a full disk is told in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.patience import PATIENCE_S

FULL = "/dev/full"

# Commands that write output without a cluster.
PROGRAM = """
import sys
import click
from tarry.cli import main
from tarry.cli.running import quietly

@click.command()
@quietly
def rows():
    for row in range(5):
        click.echo(row)

@click.command()
@quietly
def records():
    sys.stdout.buffer.write(b"record")

main.tarry.get_command = lambda context, name: {"numbers": rows, "records": records}[name]
sys.exit(main.run(sys.argv[1:]))
"""


def run_into_full(*command: str) -> subprocess.CompletedProcess[str]:
    with open(FULL, "wb") as full:
        return subprocess.run(
            [sys.executable, *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


@pytest.mark.skipif(not os.path.exists(FULL), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ("-m", "tarry.cli.main", "--help"),
        ("-m", "tarry.cli.main", "consume", "--help"),
        ("-m", "tarry.cli.main", "version"),
        ("-c", PROGRAM, "numbers"),
        ("-c", PROGRAM, "records"),
    ],
    ids=["help", "help of a command", "version", "table", "records"],
)
def test_a_full_disk_is_one_sentence_and_exit_code_1(command: tuple[str, ...]) -> None:
    ended = run_into_full(*command)

    assert ended.returncode == 1
    assert ended.stderr == "tarry: the output cannot be written: no space left on device\n"
