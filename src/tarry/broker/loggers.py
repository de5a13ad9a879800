"""The broker's loggers as a resource with settings: Kafka's BROKER_LOGGER, levels by name.

The levels belong to the process and last until it ends, as Kafka's do; `logging.level` says what
they begin with.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base import errors
from tarry.base.setting import shown
from tarry.base.settings import Settings
from tarry.cluster.config_changes import DELETE, SET, ConfigRefusal, KeyChange
from tarry.cluster.config_decisions import broker_named
from tarry.cluster.records import EVERY_BROKER

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

# Kafka's words; the finest of Python's levels is DEBUG.
_LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}


def check(name: str, changes: list[KeyChange], settings: Settings) -> None:
    """`ConfigRefusal` unless this broker has these loggers and levels."""
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


def check_broker(name: str, settings: Settings) -> None:
    """`ConfigRefusal` unless the name is this broker's id: loggers are those of one process."""
    if broker_named(name, settings) == EVERY_BROKER:
        raise ConfigRefusal(errors.INVALID_REQUEST, "loggers are those of one broker: name its id")


def set_levels(changes: list[KeyChange]) -> None:
    """Set the levels that were checked; they count from now on."""
    for key, operation, value in changes:
        level = logging.NOTSET if operation == DELETE else _LEVELS[value or ""]
        _logger(key).setLevel(level)


def set_root(level: str) -> None:
    """`logging.level` counts from now on."""
    logging.getLogger().setLevel(level.upper())


def levels() -> dict[str, str]:
    """Return the level that counts for each logger, in Kafka's words."""
    return {name: _word(_logger(name).getEffectiveLevel()) for name in NAMES}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _word(level: int) -> str:
    for word, known in _LEVELS.items():
        if level >= known:
            return word
    return "TRACE"
