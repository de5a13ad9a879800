"""Ends of the client's commands: errors as one sentence, silence if the reader of stdout is gone.

Exit codes: 0 done, 1 the cluster or the data said no, 2 wrong usage, 130 interrupted, 143
terminated.
"""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar

import click

from tarry.base.errors import InvalidSetting, TarryError
from tarry.cli.guesses import did_you_mean
from tarry.cli.profiles import settings_of_profile, use_profile
from tarry.cli.streams import ClosedStream, forget_stdout, sentence_of
from tarry.cli.tables import complain
from tarry.cli.units import Seconds

if TYPE_CHECKING:
    from tarry.client import Admin

# Names that other modules of commands import from here.
__all__ = ["Seconds", "forget_stdout"]

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_TERMINATED: Final = 143

# Kinds of clients, as the client's own table of settings has them.
COMMON: Final = "every client"
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"

DEFAULT_ADDRESS: Final = "127.0.0.1:9092"

Parameters = ParamSpec("Parameters")
Command = TypeVar("Command", bound=Callable[..., Any])


def quietly(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a command: an error of the client becomes a line on stderr, a closed pipe and Ctrl-C
    become nothing."""

    @functools.wraps(command)
    def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
        _check_texts()
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_stdout()
        except Terminated:
            forget_stdout()
            sys.exit(EXIT_TERMINATED)
        except KeyboardInterrupt:
            forget_stdout()
            sys.exit(EXIT_INTERRUPTED)
        except InvalidSetting as error:
            fail(str(error), EXIT_USAGE)
        except ClosedStream as error:
            forget_stdout()
            fail(str(error))
        except TarryError as error:
            fail(str(error), EXIT_FAILED)
        except ImportError as error:
            if error.name is not None:
                raise
            # Our own code raises it, with a sentence about the package to install.
            fail(str(error))
        except OSError as error:
            if error.filename is None:
                forget_stdout()
            fail(sentence_of(error))

    return run


def _check_texts() -> None:
    """Refuse names and values that are no UTF-8, which Kafka's protocol has no place for; paths
    may be any bytes."""
    ctx = click.get_current_context(silent=True)
    for param in ctx.command.params if ctx is not None else ():
        if not isinstance(param.type, type(click.STRING)):
            continue
        given = ctx.params.get(param.name or "") if ctx is not None else None
        for text in given if isinstance(given, tuple) else (given,):
            if isinstance(text, str) and not _is_utf8(text):
                raise click.BadParameter(f"{text!r} is not UTF-8", ctx, param)


def _is_utf8(text: str) -> bool:
    # The system hands bytes that are no UTF-8 over as lone surrogates.
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


class Terminated(KeyboardInterrupt):
    """SIGTERM as an exception, where it ends a command in the way that Ctrl-C does."""


@contextmanager
def orderly_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C inside, so that a command can end in order; a second SIGTERM ends
    the process at once.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        # The parent process has SIGTERM ignored, or the handler is set already.
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated


def fail(sentence: str, code: int = EXIT_FAILED) -> NoReturn:
    complain(sentence)
    sys.exit(code)


# Longest first sentence of a command in a help; click would cut it at 45 characters.
SENTENCE_CHARACTERS_MAX: Final = 200


class GuessingGroup(click.Group):
    """A group that names the nearest command when one is mistyped, and tells whole sentences."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        commands = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(SENTENCE_CHARACTERS_MAX))
                    for name, command in commands
                    if command is not None
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] in known:
            return super().resolve_command(ctx, args)
        guess = did_you_mean(args[0], known)
        if guess:
            raise click.UsageError(f"no such command {args[0]!r}{guess}", ctx)
        return super().resolve_command(ctx, args)


# --- Options that the commands share

_address_option = click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap",
    envvar="TARRY_BOOTSTRAP_SERVERS",
    default=DEFAULT_ADDRESS,
    show_default=True,
    metavar="HOST:PORT,...",
    help="Addresses of the cluster, or TARRY_BOOTSTRAP_SERVERS of the environment.",
)

_profile_option = click.option(
    "--profile",
    envvar="TARRY_PROFILE",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=use_profile,
    help="Profile of the configuration file, or TARRY_PROFILE; see tarry profile --help.",
)


def bootstrap_option(command: Command) -> Command:
    """Add the options that name the cluster by its addresses, or by a profile."""
    return _address_option(_profile_option(command))


settings_option = click.option(
    "-X",
    "--client-setting",
    "client_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Client setting with Kafka's key, such as request.timeout.ms=5s; repeatable.",
)

timeout_option = click.option(
    "-m",
    "--timeout",
    type=Seconds(),
    default="10s",
    show_default=True,
    metavar="TIME",
    help="How long to wait for the cluster: 10 (seconds), 500ms, 2m.",
)


class Cluster:
    """The cluster that a command works on, and for how many seconds it waits for it."""

    def __init__(self, bootstrap: str, client_settings: tuple[str, ...], timeout: float) -> None:
        self.bootstrap = bootstrap
        self.client_settings = client_settings
        self.timeout = timeout

    def admin(self) -> Admin:
        # Import the client here: a wrong call and a --help need none.
        from tarry.cli.status_line import Waiting
        from tarry.client import Admin

        admin = Admin(client_arguments(self.bootstrap, self.client_settings))
        admin.on_wait = Waiting(self.bootstrap).look
        return admin


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a cluster, its settings and the patience; the command gets one
    `cluster`.
    """

    @bootstrap_option
    @settings_option
    @timeout_option
    @functools.wraps(command)
    def run(
        *, bootstrap: str, client_settings: tuple[str, ...], timeout: float, **options: Any
    ) -> None:
        command(cluster=Cluster(bootstrap, client_settings, timeout), **options)

    return run


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def check_can_ask(question: str, *, yes: bool) -> None:
    """Fail before anything is done if a question will be needed and no terminal can answer it."""
    if not yes and not sys.stdin.isatty():
        fail(f"cannot ask without a terminal: {question} Add --yes to do it", EXIT_USAGE)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost; without a terminal only --yes will do."""
    check_can_ask(question, yes=yes)
    if not yes and not click.confirm(question):
        fail("nothing was changed")


def key_values(items: Iterable[str], what: str) -> dict[str, str]:
    """`KEY=VALUE` options as a mapping; wrong ones are wrong usage."""
    found: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.UsageError(f"invalid {what} {item!r}: write it as KEY=VALUE")
        found[key] = value
    return found


def client_arguments(
    bootstrap: str, given: Iterable[str], *, owner: str = COMMON, **ours: Any
) -> dict[str, Any]:
    """Settings for a client: what the user gave with -X wins over the profile, and that over what
    the command wants.  `owner` is the kind of client, whose settings of the profile are taken."""
    settings: dict[str, Any] = {name.replace("_", "."): value for name, value in ours.items()}
    settings.update(settings_of_profile(owner))
    settings["bootstrap.servers"] = bootstrap
    settings.update(key_values(given, "setting"))
    return settings
