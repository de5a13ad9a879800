"""What a fetch brought of one partition: batches that are decoded when somebody takes them."""

from __future__ import annotations

from typing import Final

from tarry.records.batch import batches_in, decode_batch_header
from tarry.records.record import Record, decode_records
from tarry.wire.reader import Window

# What one compressed batch may unfold to: as much as a broker takes uncompressed by default, a
# hundred times over, and no bomb.
BATCH_BYTES_MAX: Final = 256 * 1024 * 1024


class Fetched:
    """Whole batches in the order of their offsets.  `next_offset` follows the last of them."""

    def __init__(self, window: Window) -> None:
        self._batches = batches_in(window)
        self._taken = 0
        self.size = sum(batch.size for batch in self._batches)
        self.next_offset = -1
        self.leader_epoch = -1
        if self._batches:
            last = decode_batch_header(self._batches[-1].data, self._batches[-1].start)
            self.next_offset = int(last.last_offset) + 1
            self.leader_epoch = int(last.leader_epoch)

    @property
    def is_empty(self) -> bool:
        return self._taken == len(self._batches)

    def take(self, offset: int) -> FetchedBatch:
        """Decode the next batch: its records from `offset` on, none of a control batch."""
        window = self._batches[self._taken]
        self._taken += 1
        self.size -= window.size
        return decode_fetched(window, offset)


class FetchedBatch:
    """The records of one batch, and where reading goes on behind it."""

    def __init__(self, records: list[Record], next_offset: int) -> None:
        self.records = records
        self.next_offset = next_offset


def decode_fetched(window: Window, offset: int) -> FetchedBatch:
    header = decode_batch_header(window.data, window.start)
    next_offset = int(header.last_offset) + 1
    if header.is_control:
        # Markers of transactions are for clients, not for their users.
        return FetchedBatch([], next_offset)
    records = decode_records(window.data, size_max=BATCH_BYTES_MAX, position=window.start)
    if header.base_offset < offset:
        # A fetch from inside a batch brings the whole batch.
        records = [record for record in records if record.offset >= offset]
    return FetchedBatch(records, next_offset)
