"""Completion in real shells: commands, options, and names that a broker knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S


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
        f"topics create completed-topic -p 1 --if-not-exists -m {PATIENCE_S}s",
        f"consume completed-topic -G completed-group -m {PATIENCE_S}s",
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


def completes(shell: str, words: str, name: str, environment: dict[str, str]) -> bool:
    """Whether a name is offered, some time: a completion that takes long is silent."""
    end = time.monotonic() + PATIENCE_S
    while name not in completed(shell, words, environment):
        if time.monotonic() > end:
            return False
    return True


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
    assert completes(shell, "tarry cons", "consume", environment)
    assert completes(shell, "tarry consume completed-t", "completed-topic", environment)
    assert completes(shell, "tarry groups describe comp", "completed-group", environment)


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
