"""Schemas of writers whose values are all rejected: the worker's log tells of each now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("tarry.spark")

# How often a schema is told.
TOLD_S: Final = 60.0
# So many schemas are told in that time: frames may have any number.
TOLD_MAX: Final = 20


class BrokenSchemas:
    """Notes of what was told, and when; `now_s` is a clock that never goes back."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._told_s: dict[int, float] = {}

    def tell(self, schema_id: int, sentence: str) -> None:
        """Write a line to the log, once a minute for each schema."""
        now_s = self._now_s()
        told_s = self._told_s.get(schema_id)
        if told_s is not None and now_s - told_s < TOLD_S:
            return
        if told_s is None and len(self._told_s) >= TOLD_MAX:
            self._told_s = {one: at for one, at in self._told_s.items() if now_s - at < TOLD_S}
            if len(self._told_s) >= TOLD_MAX:
                return
        self._told_s[schema_id] = now_s
        log.warning("records are rejected: %s", sentence)
