"""The broker's loggers as a resource with settings: Kafka's BROKER_LOGGER, levels by name.

The levels last until the process ends, as Kafka's do; `logging.level` gives the first ones.  They
are set through the door `LogLevels`.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base import errors
from tarry.base.doors import LogLevels
from tarry.base.setting import shown
from tarry.base.settings import Settings
from tarry.cluster.configs.config_changes import DELETE, SET, ConfigRefusal, KeyChange
from tarry.cluster.configs.config_decisions import broker_named
from tarry.cluster.state.records import EVERY_BROKER

ROOT: Final = "root"
NAMES: Final = (
    ROOT,
    "tarry",
    "tarry.broker",
    "tarry.cluster",
    "tarry.group",
    "tarry.log",
    "tarry.runtime",
    "tarry.timer",
)

# Kafka's names of levels.  Python has no finer level than DEBUG.
_LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}

# Any client of a listener may set levels, so warnings about hostile peers must not be switched off.
LEVEL_MAX: Final = logging.WARNING


def check(name: str, changes: list[KeyChange], settings: Settings) -> None:
    """Raise `ConfigRefusal` unless this broker has these loggers and levels."""
    check_broker(name, settings)
    for key, operation, value in changes:
        if operation not in (SET, DELETE):
            raise ConfigRefusal(
                errors.INVALID_REQUEST, "the level of a logger is set or deleted, it is no list"
            )
        if key not in NAMES:
            raise ConfigRefusal(errors.INVALID_CONFIG, f"there is no logger '{shown(key)}'")
        if operation == DELETE and key == ROOT:
            raise ConfigRefusal(errors.INVALID_REQUEST, "the root logger always has a level")
        if operation == SET and value not in _LEVELS:
            raise ConfigRefusal(
                errors.INVALID_CONFIG,
                f"{key}={shown(value or '')}: a level is one of {', '.join(_LEVELS)}",
            )
        if operation == SET and _LEVELS[value or ""] > LEVEL_MAX:
            raise ConfigRefusal(
                errors.INVALID_CONFIG,
                f"{key}={value} would silence warnings for everybody: WARN is the highest level",
            )


def check_broker(name: str, settings: Settings) -> None:
    """Raise `ConfigRefusal` unless the name is this broker's id: loggers belong to one process."""
    if broker_named(name, settings) == EVERY_BROKER:
        raise ConfigRefusal(errors.INVALID_REQUEST, "loggers are those of one broker: name its id")


def set_levels(door: LogLevels, changes: list[KeyChange]) -> None:
    """Set levels that `check` has accepted."""
    for key, operation, value in changes:
        level = logging.NOTSET if operation == DELETE else _LEVELS[value or ""]
        door.set_level(_name(key), level)


def set_root(door: LogLevels, level: str) -> None:
    """Apply `logging.level`, the level of the root logger."""
    door.set_level("", logging.getLevelNamesMapping()[level.upper()])


def levels(door: LogLevels) -> dict[str, str]:
    """Return the level in force for each logger, in Kafka's words."""
    return {name: _word(door.level(_name(name))) for name in NAMES}


def _name(key: str) -> str:
    return "" if key == ROOT else key


class KeptLevels:
    """The door `LogLevels` of a broker that shares its process, or of a simulated one.

    It stores levels without applying them, so the process's loggers stay unchanged.
    """

    def __init__(self) -> None:
        self._own: dict[str, int] = {"": logging.INFO}

    def level(self, name: str) -> int:
        while name and self._own.get(name, logging.NOTSET) == logging.NOTSET:
            name = name.rpartition(".")[0]
        return self._own[name]

    def set_level(self, name: str, level: int) -> None:
        self._own[name] = level


def _word(level: int) -> str:
    for word, known in _LEVELS.items():
        if level >= known:
            return word
    return "TRACE"
