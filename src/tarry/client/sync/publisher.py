"""Publisher: an admin client that also sends finished record batches and reads them back.

It has no buffer and repeats nothing by itself: the caller keeps the numbered batches, and decides
what comes next.  `tarry.spark` publishes micro-batches with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.ids import TopicPartition
from tarry.client.core.publisher.look_back import SeenRange
from tarry.client.core.publisher.requests import OffsetRange, PublisherRequests
from tarry.client.core.publisher.send import SendOutcome
from tarry.client.setting_arguments import ClientArguments
from tarry.client.settings import SettingValue
from tarry.client.sync.admin import Admin
from tarry.link.errors import ClientError


class Publisher(Admin):
    """Publisher of finished batches; for one thread at a time."""

    def __init__(self, settings: Mapping[str, SettingValue] | None = None) -> None:
        super().__init__(settings, **ClientArguments())
        self._publishing = PublisherRequests(self._core.connections)

    def new_producer_id(self, timeout: float | None = None) -> tuple[int, int]:
        """Return a producer id that no other producer has, and its epoch."""
        return self._ask(self._publishing.new_producer_id(), timeout)

    def delay_source(self, topic: str, timeout: float | None = None) -> int:
        """Return how a topic takes records that are due later.  Raises SchedulingUnsupported if it
        takes none."""
        return self._ask(self._publishing.delay_source(topic), timeout)

    def send_batches(
        self,
        batches: Mapping[TopicPartition, bytes],
        topic_ids: Mapping[str, bytes],
        timeout: float | None = None,
    ) -> dict[TopicPartition, SendOutcome]:
        """Send one batch of each partition to its leader, once, with acks=all.  A topic with
        another id than the given one is refused."""
        return self._ask(self._publishing.send(batches, topic_ids), timeout)

    def look_back(
        self,
        ranges: Mapping[TopicPartition, OffsetRange],
        topic_ids: Mapping[str, bytes],
        producer_id: int,
        timeout: float | None = None,
    ) -> dict[TopicPartition, SeenRange | ClientError]:
        """Read these ranges and return which batches are of this producer.

        If the time is too short, a range is returned as far as it was read, up to its `end_offset`.
        If nothing could be read, an error is in its place.
        """
        return self._ask(self._publishing.look_back(ranges, topic_ids, producer_id), timeout)
