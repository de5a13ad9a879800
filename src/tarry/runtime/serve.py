"""The loop around Tarry's broker: what `tarry serve` runs."""

from __future__ import annotations

from collections.abc import Callable

from tarry.base.settings import Settings
from tarry.broker.lifecycle import start_broker
from tarry.runtime.loop import run


def serve(settings: Settings, announce: Callable[[Settings], None]) -> str:
    """Serve until asked to stop; "" after a clean stop, else why it ended.

    `announce` is called when connections come in.  `StartRefused` says why there was no start.
    """
    return run(settings, start_broker, announce)
