"""Serve: the loop around Tarry's broker, which `tarry serve` runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.broker import settings_reread
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import start_broker
from tarry.runtime.log_levels import ProcessLevels
from tarry.runtime.loop import Turning, run


def serve(
    settings: Settings,
    announce: Callable[[Settings], None],
    read_again: Callable[[], Settings],
) -> str:
    """Serve until a stop is requested; return "" after a clean stop, else the reason of the end.

    `announce` is called when connections are accepted, `read_again` after a SIGHUP.
    `StartRefused` says why the broker cannot start.
    """

    def on_hang_up(broker: Turning) -> None:
        assert isinstance(broker, Broker)
        try:
            fresh = read_again()
        except InvalidSetting as error:
            settings_reread.tell_refusal(error)
        else:
            settings_reread.take_over(broker, fresh)

    prepare = None
    if settings.store_address is not None:
        # Imported here, so that a broker without a cluster does not pay for it.
        from tarry.runtime.joining import join

        prepare = join
    start = partial(start_broker, levels=ProcessLevels())
    return run(settings, start, announce, on_hang_up, prepare)
