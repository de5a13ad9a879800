"""How commands of the client end: in a sentence, and quietly when nobody listens any more.

Exit codes: 0 done, 1 the cluster or the data said no, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, ParamSpec

import click

from tarry.base.errors import InvalidSetting, TarryError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

DEFAULT_ADDRESS: Final = "127.0.0.1:9092"

Parameters = ParamSpec("Parameters")


def quietly(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Errors of the client become one line on stderr; a closed pipe and Ctrl-C become nothing."""

    @functools.wraps(command)
    def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_stdout()
        except KeyboardInterrupt:
            forget_stdout()
            sys.exit(EXIT_INTERRUPTED)
        except InvalidSetting as error:
            fail(str(error), EXIT_USAGE)
        except TarryError as error:
            fail(str(error), EXIT_FAILED)

    return run


def fail(sentence: str, code: int = EXIT_FAILED) -> NoReturn:
    click.echo(f"tarry: {sentence}", err=True)
    sys.exit(code)


def forget_stdout() -> None:
    """Nobody reads it any more; the interpreter must not try to flush it at its end."""
    try:
        handle = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)


# --- Options that the commands share

bootstrap_option = click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap",
    envvar="TARRY_BOOTSTRAP_SERVERS",
    default=DEFAULT_ADDRESS,
    show_default=True,
    metavar="HOST:PORT,...",
    help="Where to find the cluster; also the environment's TARRY_BOOTSTRAP_SERVERS.",
)

settings_option = click.option(
    "-X",
    "--client-setting",
    "client_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the client by Kafka's key, such as request.timeout.ms=5s.",
)

timeout_option = click.option(
    "-m",
    "--timeout",
    type=float,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the cluster.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def key_values(items: Iterable[str], what: str) -> dict[str, str]:
    """`KEY=VALUE` options as a mapping; wrong ones are wrong usage."""
    found: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.UsageError(f"write the {what} {item!r} as KEY=VALUE")
        found[key] = value
    return found


def client_arguments(bootstrap: str, given: Iterable[str], **ours: Any) -> dict[str, Any]:
    """Settings for a client: what the user gave with -X wins over what the command wants."""
    settings: dict[str, Any] = {name.replace("_", "."): value for name, value in ours.items()}
    settings["bootstrap.servers"] = bootstrap
    settings.update(key_values(given, "setting"))
    return settings
