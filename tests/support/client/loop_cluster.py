"""A scripted cluster whose core an asyncio driver turns, in a loop whose clock the test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.client.hand_loop_face import HandLoopDriver
from tests.support.client.scripted_cluster import ScriptedCluster
from tests.support.hand_loop import HandLoop

from tarry.client.core.core import ClientCore


class WatchedDriver(HandLoopDriver):
    """Driver that tells after each turn."""

    after_turn: Callable[[], None]

    def _turn(self) -> None:
        super()._turn()
        self.after_turn()


class LoopCluster(ScriptedCluster):
    """Lets the loop run where the scripted cluster turns the core by itself."""

    def __init__(self, brokers: int = 1) -> None:
        self.loop = HandLoop()
        self.is_done: Callable[[], bool] = bool
        super().__init__(brokers)

    @property
    def now_ms(self) -> int:
        return round(self.loop.now * 1000)

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        if now_ms != self.now_ms:
            self.loop.now = now_ms / 1000

    def attach(self, core: ClientCore) -> Any:
        if self.core is core:
            return core
        self.core = core
        self.driver = WatchedDriver(core.settings, lambda driver: core, self, self.loop)
        self.driver.after_turn = self._look

        async def bind() -> None:
            self.driver.check_usable()

        self.loop.run(bind())
        return core

    def _look(self) -> None:
        if self.is_done():
            self.loop.stop()

    def run_until(
        self, is_done: Callable[[], bool], limit_ms: int = 300_000, *, must: bool = True
    ) -> None:
        """Let the loop run until it is done; the driver turns the core when it likes."""
        end_ms = self.now_ms + limit_ms
        self.is_done = is_done
        self.loop.call_soon(self.driver.turn_in_loop)
        end = self.loop.call_at(end_ms / 1000, self._end)
        self.loop.run_forever()
        end.cancel()
        self.is_done = bool
        assert self.loop.errors == []
        assert not must or is_done(), f"not done after {limit_ms} ms"

    def _end(self) -> None:
        self.driver.turn_in_loop()
        self.loop.stop()
