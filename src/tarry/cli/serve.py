"""`tarry serve`: settings from a file, the environment and the command line, then the loop."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import click

import tarry
from tarry.base.errors import InvalidSetting
from tarry.base.listeners import BrokerListener, host_and_port
from tarry.base.properties import SettingTexts
from tarry.base.settings import Settings
from tarry.base.settings_warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

logger = logging.getLogger("tarry.cli")

# Address that the other commands use by default.
DEFAULT_ADDRESS: Final = "127.0.0.1:9092"

# Settings that suit a first try better than the defaults.
QUICK_START: Final = ["group.initial.rebalance.delay.ms=0"]

EXAMPLES: Final = """\b
Examples:
  tarry serve
  tarry serve --set log.dirs=/var/lib/tarry --set num.partitions=3
  tarry serve --config server.properties
  TARRY_LOG_DIRS=/var/lib/tarry tarry serve
  tarry serve --set listeners=PLAINTEXT://0.0.0.0:9092 \\
      --set advertised.listeners=PLAINTEXT://broker.example:9092
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    envvar="TARRY_CONFIG",
    help="A properties file with Kafka's keys, as its server.properties.",
)
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="One setting; may be given again and again.",
)
@click.option(
    "--quick-start",
    is_flag=True,
    help="For a first try: print what to type next, also where no terminal is, and let the first "
    "consumer of a group begin at once (group.initial.rebalance.delay.ms=0 unless it is set).",
)
def serve(config_path: str | None, assignments: Sequence[str], quick_start: bool) -> int:
    """Run a broker until SIGTERM or Ctrl-C; a second one ends it at once.

    Settings are Kafka's: those of the file, then TARRY_... of the environment (TARRY_LOG_DIRS is
    log.dirs), then --set; later ones win.  Data is kept in ./tarry-data unless log.dirs says
    otherwise.  SIGHUP reads them again and applies those that may change while the broker runs.
    """

    def load() -> Settings:
        return load_settings(
            config_path, os.environ, assignments, QUICK_START if quick_start else ()
        )

    settings = load()
    # Import the runtime here: it is heavy, and not needed to refuse a wrong setting.
    from tarry.runtime import serve as runtime
    from tarry.runtime.log_lines import install_lines

    lines = install_lines(settings.logging_format, settings.logging_level)
    for sentence in warnings(settings):
        logger.warning("%s", sentence)
    with_hints = quick_start or sys.stdout.isatty()
    reason = runtime.serve(settings, partial(announce, with_hints=with_hints), load)
    if reason:
        lines.tell(f"tarry: {reason}")
    else:
        logger.info("stopped cleanly")
    return 1 if reason else 0


def load_settings(
    config_path: str | None,
    environment: Mapping[str, str],
    assignments: Sequence[str],
    defaults: Sequence[str] = (),
) -> Settings:
    """Load the settings of all sources; later ones win, over `defaults` any."""
    given = SettingTexts()
    given.add_assignments(defaults)
    if config_path is not None:
        given.add_properties(_read(config_path), config_path)
    given.add_environment(environment)
    given.add_assignments(assignments)
    return Settings(given.texts, given.sources)


def announce(settings: Settings, *, with_hints: bool) -> None:
    """Announce where the broker is and what to try, each command on a line that can be pasted as it
    is.
    """
    told = settings.open_listeners[0]
    address = host_and_port(told.advertised_host, told.advertised_port)
    server = "" if address == DEFAULT_ADDRESS else f" -b {address}"
    hints = (
        "; try tarry produce and tarry consume in another terminal:\n"
        f"  echo hello | tarry produce{server} greetings\n"
        f"  tarry consume{server} greetings\n"
        "or let a record appear in ten seconds:\n"
        f"  tarry topics create{server} later -c delay.enable=true -c delay.source=timestamp\n"
        f"  echo hello | tarry produce{server} later --timestamp +10s\n"
        f"  tarry consume{server} later --follow"
    )
    # Write it at once: a program that waits for the first line may stop reading then.
    click.echo(f"Tarry is ready at {address}{hints if with_hints else ''}")
    logger.info("data in %s, %s form", os.path.abspath(settings.log_directory), tarry.FORM)
    if tarry.FORM != "compiled" and tarry.FORM_REASON != "TARRY_PURE is set":
        logger.warning(
            "the broker runs interpreted and needs about four times the CPU of the compiled form "
            "(%s); with a C compiler on the machine, `make setup` compiles a checkout and "
            "TARRY_COMPILE=1 pip install the source package",
            tarry.FORM_REASON,
        )
    logger.info("listening at %s", "; ".join(_told(one) for one in settings.open_listeners))


def _told(listener: BrokerListener) -> str:
    """Describe an opened address, and the one that its clients are told where that is another."""
    opened = host_and_port(listener.host, listener.port)
    advertised = host_and_port(listener.advertised_host, listener.advertised_port)
    line = f"{listener.name}://{opened}"
    return line if opened == advertised else f"{line} (advertised as {advertised})"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSetting(f"{path} is no text in UTF-8") from None
