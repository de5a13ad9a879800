"""Entry point of the command `tarry`: which commands there are, and how a failure ends.

A command's module is imported when the command is called, since a broker and a small tool both
want to start at once.  Whatever goes wrong ends as one sentence and an exit code: 2 for a wrong
call, 3 for a start that was refused, 130 for Ctrl-C, 1 for anything else.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import click

from tarry import __version__
from tarry.base.errors import InvalidSetting, TarryError
from tarry.cli.running import GuessingGroup
from tarry.cli.streams import ClosedStream, forget_stdout, prepare_streams, sentence_of
from tarry.cli.tables import complain

FAILED: Final = 1
WRONG_USAGE: Final = 2
START_REFUSED: Final = 3
INTERRUPTED: Final = 130

# Variable that a shell sets when it completes a line; the name is click's for a command `tarry`.
COMPLETION_VARIABLE: Final = "_TARRY_COMPLETE"

# Name → (module:attribute, the first sentence of its help), in the order of a first session.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "serve": (
        "tarry.cli.serve:serve",
        "Run a broker until SIGTERM or Ctrl-C; a second one ends it at once.",
    ),
    "topics": ("tarry.cli.topics:topics", "List, create, describe, change and delete topics."),
    "produce": (
        "tarry.cli.produce:produce",
        "Send records to TOPIC: lines of stdin, or of files.",
    ),
    "consume": (
        "tarry.cli.consume:consume",
        "Print the records of topics: up to their end, or on and on with --follow.",
    ),
    "schedule": (
        "tarry.cli.schedule:schedule",
        "List, show, cancel, move, count and load records that wait until they are due.",
    ),
    "groups": (
        "tarry.cli.groups:groups",
        "List, describe, explain, reset, export and delete consumer groups.",
    ),
    "configs": (
        "tarry.cli.configs:configs",
        "Get, set and unset settings of topics and brokers.",
    ),
    "log": (
        "tarry.cli.log:log",
        "Show the sizes of logs, verify the data of a stopped broker, dump its files.",
    ),
    "spark": (
        "tarry.cli.spark.commands:spark",
        "Run pipelines; archive, recount, compact and replay topics; tell what a broker did.",
    ),
    "health": (
        "tarry.cli.health:health",
        "Check that a cluster answers, can be written and is not damaged.",
    ),
    "describe": (
        "tarry.cli.describe:describe",
        "Show a cluster: its id, its brokers, its topics, how far the brokers' clocks are apart.",
    ),
    "cluster": (
        "tarry.cli.cluster:cluster",
        "Show how a cluster is, and wait until it is whole.",
    ),
    "brokers": (
        "tarry.cli.brokers:brokers",
        "List brokers, move what one has to the others, take one out of the cluster.",
    ),
    "metadata": (
        "tarry.cli.metadata:metadata",
        "Check what a cluster keeps in etcd, and move a single broker's metadata there.",
    ),
    "perf": (
        "tarry.cli.perf:perf",
        "Measure throughput, latency and CPU of producing and consuming.",
    ),
    "profile": (
        "tarry.cli.profile:profile",
        "List and show the profiles of the configuration file.",
    ),
    "completion": (
        "tarry.cli.completion:completion",
        "Print the script that completes commands, topics and groups in a shell.",
    ),
    "simulate": (
        "tarry.cli.simulate:simulate",
        "Run the broker in a simulated world, with crashes, and check its promises.",
    ),
    "timer": ("tarry.cli.timer:timer", "Draw timing wheels."),
    "version": (
        "tarry.cli.version:version",
        "Show the version, the form of the hot modules, Python and the platform.",
    ),
}

EXAMPLES: Final = """\b
Examples:
  tarry serve                                 a broker on 127.0.0.1:9092
  echo hello | tarry produce greetings        a record into the topic "greetings"
  tarry consume greetings                     prints all its records
  tarry consume greetings --group readers     only what the group has not read yet
"""


class LazyGroup(GuessingGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        module, _, attribute = found[0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), cmd_name
        if COMPLETION_VARIABLE in os.environ:
            from tarry.cli.completing import complete_names

            complete_names(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Do not import the commands: `tarry --help` is often the first call, and has to be fast.
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])


# Settings of click that the commands inherit: the names of the help option.
CONTEXT_SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"]}


@click.group(cls=LazyGroup, epilog=EXAMPLES, context_settings=CONTEXT_SETTINGS)
@click.version_option(__version__, message="%(prog)s %(version)s")
def tarry() -> None:
    """Run and use a message broker that speaks Kafka's wire protocol."""


def main() -> None:
    """Run the installed command."""
    prepare_streams()
    # Commands print themselves what they wait for.
    logging.getLogger("tarry.client.waiting").disabled = True
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], system: str = os.name) -> int:
    """Run a command line; return the exit code."""
    if system == "nt":
        return _fail("Tarry runs on Linux and macOS; on Windows use it inside WSL 2", FAILED)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe: it needs no more output.
        forget_stdout()
        return FAILED
    except OSError as error:
        forget_stdout()
        return _fail(sentence_of(error), FAILED)
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        code = tarry.main(list(arguments), prog_name="tarry", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except ClosedStream as error:
        forget_stdout()
        return _fail(str(error), FAILED)
    except TarryError as error:
        return _fail(str(error), _exit_code(error))
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else FAILED
    return code if isinstance(code, int) else 0


def _exit_code(error: TarryError) -> int:
    if isinstance(error, InvalidSetting):
        return WRONG_USAGE
    # Compare the name of the class: only `serve` imports the runtime, where the class is.
    return START_REFUSED if type(error).__name__ == "StartRefused" else FAILED


def _fail(sentence: str, code: int) -> int:
    complain(sentence)
    return code


if __name__ == "__main__":
    main()
