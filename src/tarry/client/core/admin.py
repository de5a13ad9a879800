"""The admin client's core: calls to the cluster, and offsets looked up at the leaders."""

from __future__ import annotations

from tarry.base.doors import Random
from tarry.client.core.core import ClientCore
from tarry.client.core.lookup import Lookup, OffsetQuery
from tarry.client.settings import ClientSettings


class AdminCore(ClientCore):
    """`begin_call` and `begin_query`, then turns until they are done."""

    def __init__(self, settings: ClientSettings, random: Random, now_ms: int) -> None:
        super().__init__(settings, random, now_ms)
        self.lookup = Lookup(self.connections, self.metadata, self.refresh)

    def begin_query(self, query: OffsetQuery) -> None:
        for topic, _ in query.wanted:
            self.track(topic)
        query.begin(self.lookup)

    def work(self, now_ms: int) -> None:
        self.lookup.work(now_ms)
