"""The admin client's core: calls to the cluster, and offsets looked up at the leaders."""

from __future__ import annotations

from typing import Any

from tarry.base.doors import Random
from tarry.client.core.consumer.lookup import Lookup, OffsetQuery
from tarry.client.core.core import ClientCore
from tarry.client.settings import ClientSettings
from tarry.link.errand import Errand


class AdminCore(ClientCore):
    """`begin_call`, `begin_errand` and `begin_query`, then turns until they are done."""

    def __init__(self, settings: ClientSettings, random: Random, now_ms: int) -> None:
        super().__init__(settings, random, now_ms)
        self.lookup = Lookup(self.connections, self.metadata, self.refresh)

    # Any: each errand has an answer of its own class.
    def begin_errand(self, errand: Errand[Any], timeout_ms: int) -> None:
        """Do several calls for one answer; ends as `errand.is_done`."""
        self.errands.begin(errand, timeout_ms, self.now_ms)

    def begin_query(self, query: OffsetQuery) -> None:
        for topic, _ in query.wanted:
            self.track(topic)
        query.begin(self.lookup)

    def work(self, now_ms: int) -> None:
        self.errands.work(now_ms)
        self.lookup.work(now_ms)
