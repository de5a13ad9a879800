"""Completion in real shells: commands, options, and names that a broker knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess


@pytest.fixture
def environment(shared_broker: BrokerProcess, tmp_path: Path) -> dict[str, str]:
    """A `tarry` on the path, and a topic and a group on the broker."""
    program = tmp_path / "bin" / "tarry"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tarry "$@"\n')
    program.chmod(0o755)
    made = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TARRY_BOOTSTRAP_SERVERS": shared_broker.address,
    }
    for line in (
        "topics create completed-topic -p 1 --if-not-exists",
        "consume completed-topic -G completed-group",
    ):
        subprocess.run(["tarry", *line.split()], env=made, capture_output=True, check=True)
    return made


SHELLS = {
    # The words so far, and the function that the script registers for them.
    "bash": """
        eval "$(tarry completion bash)"
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _tarry_completion tarry
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # Without a line editor: what the function would offer is printed in its place.
    "zsh": """
        autoload -Uz compinit && compinit -u
        eval "$(tarry completion zsh)"
        words=({words}); CURRENT=${{#words}}
        compadd() {{ print -l -- ${{(P)@[-1]}} }}
        _describe() {{ print -l -- ${{(P)3}} }}
        _tarry_completion
    """,
    "fish": """
        tarry completion fish | source
        complete --do-complete='{words}'
    """,
}


def completed(shell: str, words: str, environment: dict[str, str]) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = textwrap.dedent(SHELLS[shell]).format(words=words)
    done = subprocess.run(
        [shell, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_and_names_of_the_cluster(
    shell: str, environment: dict[str, str]
) -> None:
    assert "consume" in completed(shell, "tarry cons", environment)
    assert "completed-topic" in completed(shell, "tarry consume completed-t", environment)
    assert "completed-group" in completed(shell, "tarry groups describe comp", environment)


def test_a_cluster_that_is_not_there_is_silence(environment: dict[str, str]) -> None:
    environment["TARRY_BOOTSTRAP_SERVERS"] = "127.0.0.1:1"

    done = subprocess.run(
        ["tarry"],
        capture_output=True,
        env={
            **environment,
            "_TARRY_COMPLETE": "bash_complete",
            "COMP_WORDS": "tarry consume comp",
            "COMP_CWORD": "2",
        },
        check=True,
    )

    assert (done.stdout.strip(), done.stderr) == (b"", b"")
