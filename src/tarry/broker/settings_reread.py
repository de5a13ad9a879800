"""Settings that are read again while the broker runs, as after SIGHUP; some of them take effect."""

from __future__ import annotations

import logging

from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.broker import loggers
from tarry.broker.broker import Broker
from tarry.broker.metadata.changes_told import changed_text

logger = logging.getLogger("tarry.broker")


def take_over(broker: Broker, fresh: Settings) -> None:
    """Apply the keys of `fresh` that may change; log which others wait for the next start.

    Settings that clients have changed still override those of the file.
    """
    settings = broker.settings
    before = settings.given_texts()
    level_before = settings.logging_level
    try:
        waiting = settings.take_over_given(fresh)
    except InvalidSetting as error:
        tell_refusal(error)
        return
    changed = changed_text(before, settings.given_texts())
    if changed:
        logger.info("settings read again, from now on: %s", changed)
        if settings.logging_level != level_before:
            loggers.set_root(broker.levels, settings.logging_level)
        broker.hosting.reconfigure_broker()
    if waiting:
        logger.warning("settings that count only after a restart: %s", ", ".join(waiting))
    if not changed and not waiting:
        logger.info("settings read again: nothing has changed")


def tell_refusal(error: InvalidSetting) -> None:
    """Log that the file or the environment has invalid settings, and that the present ones stay."""
    logger.error("settings cannot be read again, those of before stay: %s", error)
