"""A consumer of a virtual topic, by hand: it goes on as clients do, batch after batch."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.broker.broker_user import ORDERS, User

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages.fetch import PartitionData
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tarry.records.batch import checked_header
from tarry.records.record import decode_records
from tarry.wire.reader import Window

SHOWN = f"__scheduled.{ORDERS}"


class Seen(NamedTuple):
    """Records that an answer shows, by offset, and where its reader goes on."""

    records: list[tuple[int, bytes | None]]
    next_offset: int
    batch_count: int


def seen_in(partition: PartitionData, offset: int) -> Seen:
    """Read an answer to a fetch from this offset: control batches are skipped, as by clients."""
    assert partition.error_code == errors.NONE, errors.error_name(partition.error_code)
    window = partition.records
    assert isinstance(window, Window)
    seen = Seen([], offset, 0)
    position = window.start
    while position < window.end:
        header = checked_header(window.data, position)
        assert header.last_offset >= seen.next_offset
        if not header.is_control:
            found = decode_records(window.data, size_max=1 << 26, position=position)
            seen.records.extend((each.offset, each.value) for each in found)
        seen = Seen(seen.records, header.last_offset + 1, seen.batch_count + 1)
        position += header.size
    assert position == window.end
    return seen


class WaitingReader(User):
    """Reader of the virtual topic of `orders`."""

    def look(self, offset: int = 0, **terms: object) -> Seen:
        """What one fetch shows."""
        return seen_in(self.fetch(offset, topic=SHOWN, **terms), offset)

    def read(self, offset: int = 0, **terms: object) -> list[tuple[int, bytes | None]]:
        """Records from the offset on to the end, by as many fetches as it takes."""
        found: list[tuple[int, bytes | None]] = []
        for _ in range(10_000):
            answer = self.fetch(offset, topic=SHOWN, **terms)
            seen = seen_in(answer, offset)
            found += seen.records
            if offset == answer.high_watermark:
                return found
            offset = seen.next_offset
        raise AssertionError(f"a reader does not come to the end, it stays at {offset}")

    def values(self) -> list[bytes | None]:
        return [value for _, value in self.read()]

    def metadata(
        self, name: str | None = SHOWN, topic_id: bytes = ZERO_UUID, *, version: int = 12
    ) -> MetadataResponseTopic:
        asked = MetadataRequest([MetadataRequestTopic(topic_id, name)])
        response = self.client.ask(api_keys.METADATA, version, asked)
        assert isinstance(response, MetadataResponse)
        return response.topics[0]
