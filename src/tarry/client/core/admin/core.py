"""The admin client's core: calls to the cluster, and look-ups of offsets at the leaders."""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.doors import Random
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.arguments import asked_times_of
from tarry.client.core.admin.requests import AdminRequests
from tarry.client.core.consumer.lookup import FoundOffset, Lookup, OffsetQuery
from tarry.client.core.core import ClientCore
from tarry.client.settings import READ_COMMITTED, ClientSettings
from tarry.link.errors import ClientError, TimedOut, timed_out


class AdminCore(ClientCore):
    """Core that advances the calls, errands and queries of an admin client in each turn."""

    def __init__(self, settings: ClientSettings, random: Random, now_ms: int) -> None:
        super().__init__(settings, random, now_ms)
        self.requests = AdminRequests(self.connections)
        self.lookup = Lookup(self.connections, self.metadata, self.refresh)
        # With `read_committed`, the end of a log is its last stable offset.
        self.committed_lookup = Lookup(
            self.connections, self.metadata, self.refresh, READ_COMMITTED
        )

    def begin_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        timeout_ms: int,
        now_ms: int,
        *,
        read_committed: bool = False,
    ) -> AdminOffsets:
        """Look up the offsets at times, or at EARLIEST, LATEST or MAX_TIMESTAMP."""
        asked = asked_times_of("offsets", wanted)
        for topic, _ in asked:
            self.track(topic)
        lookup = self.committed_lookup if read_committed else self.lookup
        query = AdminOffsets(self.operations, lookup, asked)
        return self.operations.begin(query, timeout_ms, now_ms)

    def work(self, now_ms: int) -> None:
        self.errands.work(now_ms)
        self.lookup.work(now_ms)
        self.committed_lookup.work(now_ms)


class AdminOffsets(OffsetQuery[dict[TopicPartition, FoundOffset | ClientError]]):
    """Query of offsets.  The answer holds an error if the leader refused a partition, and TimedOut
    if no leader answered."""

    def look(self, now_ms: int) -> bool:
        return self.is_late or super().look(now_ms)

    def answer(self, now_ms: int) -> dict[TopicPartition, FoundOffset | ClientError]:
        return {
            place: self.answers.get(place) or self._late(place, now_ms) for place in self.wanted
        }

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        self.lookup.untrack_missing(self.wanted)

    def _late(self, place: TopicPartition, now_ms: int) -> TimedOut:
        what = f"the leader of {place[0]} [{place[1]}] did not tell its offset"
        return timed_out(what, self.timeout_ms, self.lookup.problem_of(place, now_ms))
