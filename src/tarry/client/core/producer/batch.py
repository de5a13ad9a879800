"""ProducerBatch: a batch of records of one partition, and the receipts for its records.

Records are encoded as they are appended.  A receipt refers to a batch and a place in it, so that
the end of a batch costs the same for one record as for a thousand.  A batch that was split ends as
`pieces`, and its receipts look there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mypy_extensions import mypyc_attr

from tarry.client.errors import DeliveryTimedOut
from tarry.link.errors import ClientError
from tarry.records.builder import BatchBuilder, Headers
from tarry.records.record import decode_records

if TYPE_CHECKING:
    from tarry.client.core.producer.acknowledgement import Acknowledgement

OFFSET_UNKNOWN: Final = -1

# Maximum size of a record beside its key, value and headers: attributes 1, timestamp delta 10, and
# five bytes each for its length, offset delta, key length, value length and header count.
RECORD_OVERHEAD: Final = 36

UNSEQUENCED: Final = -1


class ProducerBatch:
    """Batch of records: open while records are appended, then closed, sent, and done once."""

    __slots__ = (
        "append_time_ms",
        "attempts",
        "base_offset",
        "base_sequence",
        "builder",
        "count",
        "deadline_ms",
        "encoded_bytes",
        "error",
        "expected",
        "is_done",
        "last_error",
        "order",
        "owner",
        "partition",
        "payload_bytes",
        "pieces",
        "producer_epoch",
        "producer_id",
        "s_offset",
        "topic",
        "unseen_failures",
        "waits",
        "was_sent",
    )

    def __init__(
        self, topic: str, partition: int, order: tuple[int, ...], deadline_ms: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        # Position among the batches of the partition; splits and retries keep it.
        self.order = order
        # The face, for receipts that are waited for.
        self.owner: object = None
        self.deadline_ms = deadline_ms
        self.builder: BatchBuilder | None = BatchBuilder()
        self.count = 0
        self.payload_bytes = 0
        # Size on the wire at the last send.
        self.encoded_bytes = 0
        self.attempts = 0
        # True if the batch was handed to a connection, so that a broker may have it.
        self.was_sent = False
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = UNSEQUENCED
        self.last_error: ClientError | None = None
        self.is_done = False
        self.error: ClientError | None = None
        self.base_offset = OFFSET_UNKNOWN
        self.append_time_ms = -1
        # S-offset of the batch if the broker stores it as scheduled until it is due; -1 if not.
        self.s_offset = OFFSET_UNKNOWN
        self.pieces: list[Piece] | None = None
        # Number of failed records for whose receipts no call has asked.
        self.unseen_failures = 0
        # Operations that wait for records of this batch, as an ordered set; None if there are none.
        self.waits: dict[Acknowledgement, None] | None = None
        # Callbacks to call when the batch is done; None if there are none.
        self.expected: list[Delivery] | None = None

    @property
    def is_parked(self) -> bool:
        """True if the broker keeps the batch apart until it is due."""
        return self.s_offset >= 0

    @property
    def size(self) -> int:
        """Size in bytes before compression."""
        return self.builder.size if self.builder is not None else 0

    def append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> int:
        """Add a record; return its place."""
        assert self.builder is not None
        self.builder.append(timestamp, key, value, headers)
        place = self.count
        self.count = place + 1
        return place

    def encode(self, codec: int, level: int | None = None) -> bytes:
        """Encode the batch; the bytes stay the same as long as its sequence stays the same."""
        assert self.builder is not None
        data = self.builder.build(
            codec,
            level=level,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
        )
        self.encoded_bytes = len(data)
        return data

    def forget_sequence(self) -> None:
        """Remove the sequence: the broker does not have the batch, so it may be numbered again."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = UNSEQUENCED

    def succeed(self, base_offset: int, append_time_ms: int) -> None:
        assert not self.is_done
        self.is_done = True
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self.builder = None

    def fail(self, error: ClientError) -> None:
        assert not self.is_done
        self.is_done = True
        self.error = error
        self.unseen_failures = self.count
        self.builder = None

    def split(self) -> list[ProducerBatch]:
        """Split the batch into two halves; their records keep their sequences."""
        middle = self.count // 2
        return self._taken_apart([(0, middle - 1), (middle, self.count - 1)], {})

    def without(self, flaws: dict[int, ClientError]) -> ProducerBatch | None:
        """Return a batch of the records without a flaw, or None if there are none; the others
        fail."""
        runs: list[tuple[int, int]] = []
        for place in range(self.count):
            if place in flaws:
                continue
            if runs and runs[-1][1] == place - 1:
                runs[-1] = (runs[-1][0], place)
            else:
                runs.append((place, place))
        rest = self._taken_apart(runs, flaws, into_one=True)
        return rest[0] if rest else None

    def _taken_apart(
        self,
        runs: list[tuple[int, int]],
        flaws: dict[int, ClientError],
        *,
        into_one: bool = False,
    ) -> list[ProducerBatch]:
        records = decode_records(self.encode(0), size_max=self.size + 1)
        share = self.payload_bytes // max(self.count, 1)
        self.pieces = []
        made: list[ProducerBatch] = []
        for first, last in runs:
            if not made or not into_one:
                made.append(self._child(len(made), first))
            batch = made[-1]
            self.pieces.append(Piece(first, last, batch, batch.count))
            for record in records[first : last + 1]:
                batch.append(record.timestamp, record.key, record.value, record.headers)
            batch.payload_bytes += share * (last - first + 1)
        for place, error in flaws.items():
            failed = ProducerBatch(self.topic, self.partition, self.order, self.deadline_ms)
            failed.count = 1
            failed.fail(error)
            self.pieces.append(Piece(place, place, failed, 0))
        self.builder = None
        return made

    def _child(self, number: int, first: int) -> ProducerBatch:
        child = ProducerBatch(self.topic, self.partition, (*self.order, number), self.deadline_ms)
        child.last_error = self.last_error
        # A half is sent alone, like a retried batch.  The broker has refused the whole batch, so
        # pipelined halves would lose nothing; but if one sequence is refused, those behind it are
        # refused too, and each costs a request.
        child.attempts = self.attempts
        child.was_sent = self.was_sent
        if self.base_sequence != UNSEQUENCED:
            child.producer_id = self.producer_id
            child.producer_epoch = self.producer_epoch
            # A batch that lost records is numbered without gaps from its first sequence.
            start = first if number > 0 else 0
            child.base_sequence = (self.base_sequence + start) & 0x7FFF_FFFF
        return child

    def offset_at(self, place: int) -> int:
        """Return the offset of the record at a place of this batch; -1 if it is not known."""
        return self.base_offset + place if self.base_offset >= 0 else OFFSET_UNKNOWN

    def s_offset_at(self, place: int) -> int:
        """Return the number that names the record at a place while it is parked, or -1."""
        return self.s_offset + place if self.s_offset >= 0 else OFFSET_UNKNOWN

    def locate(self, place: int) -> tuple[ProducerBatch, int]:
        """Return the batch that a record is in now, and its place there."""
        batch = self
        while batch.pieces is not None:
            for piece in batch.pieces:
                if piece.first <= place <= piece.last:
                    batch, place = piece.batch, piece.start + place - piece.first
                    break
            else:
                raise AssertionError(f"record {place} is in no piece")
        return batch, place


class Piece:
    """Piece of a batch that was split: its records `first` to `last` are in `batch` now, from place
    `start` on."""

    __slots__ = ("batch", "first", "last", "start")

    def __init__(self, first: int, last: int, batch: ProducerBatch, start: int) -> None:
        self.first = first
        self.last = last
        self.batch = batch
        self.start = start


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordReceipt:
    """Receipt for one record; it looks at the record's batch when asked.

    A receipt equals itself.  If its record is done, it also equals its copies, which have no
    owner.
    """

    __slots__ = ("_batch", "_place", "_timestamp", "_was_asked")

    def __init__(self, batch: ProducerBatch, place: int, timestamp: int) -> None:
        self._batch = batch
        self._place = place
        self._was_asked = False
        self._timestamp = timestamp

    @property
    def timestamp(self) -> int:
        """Time in milliseconds since 1970: the record's own, or the time of its append if the
        topic's `message.timestamp.type` is LogAppendTime."""
        append_time_ms = self.batch.append_time_ms
        return append_time_ms if append_time_ms >= 0 else self._timestamp

    @property
    def owner(self) -> object:
        """Face that has sent the record."""
        return self._batch.owner

    @property
    def batch(self) -> ProducerBatch:
        """Batch that the record is in now."""
        return self._batch.locate(self._place)[0]

    @property
    def topic(self) -> str:
        """Topic of the record."""
        return self._batch.topic

    @property
    def partition(self) -> int:
        """Partition of the record, chosen when it was sent."""
        return self._batch.partition

    @property
    def is_done(self) -> bool:
        """True if the record is in the log or has failed."""
        return self.batch.is_done

    @property
    def is_parked(self) -> bool:
        """True if the broker has stored the record as scheduled until it is due; it has no offset
        then."""
        return self.batch.is_parked

    @property
    def error(self) -> ClientError | None:
        """Reason why the record failed, None if it did not; reading it counts as having seen it."""
        batch = self.batch
        if batch.error is not None and not self._was_asked:
            self._was_asked = True
            batch.unseen_failures -= 1
        return batch.error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordReceipt):
            return False
        if self._batch is other._batch:
            return self._place == other._place
        # Two receipts of living producers are of different records.
        is_copy = self.owner is None or other.owner is None
        return is_copy and self.is_done and other.is_done and self._state() == other._state()

    def __hash__(self) -> int:
        # Only fields that stay the same when the record is done.
        return hash((self.topic, self.partition, self._place))

    def __reduce__(self) -> tuple[object, ...]:
        if not self.is_done:
            raise TypeError(
                "the receipt of a record that is not done cannot be pickled or copied: "
                "wait for its result first"
            )
        return restored_receipt, (type(self), self._state())

    def _state(self) -> ReceiptState:
        """Return the state of a finished receipt, for a copy."""
        first = self._batch
        return ReceiptState(
            first.topic, first.partition, first.order, self._place, self.timestamp,
            self.offset, self.batch.error, self.s_offset,
        )  # fmt: skip

    def __repr__(self) -> str:
        # Read the error of the batch, because reading `self.error` counts as having seen it.
        batch = self.batch
        state = "waits"
        if batch.is_done:
            state = f"at offset {self.offset}" if batch.error is None else f"failed: {batch.error}"
            if batch.is_parked:
                state = "is parked until it is due"
        return f"<Receipt {self.topic} [{self.partition}] {state}>"

    @property
    def offset(self) -> int:
        """Offset of the record; -1 if it is not known yet, with acks=0, for a duplicate, and for a
        record that is scheduled."""
        batch, place = self._batch.locate(self._place)
        return batch.offset_at(place)

    @property
    def s_offset(self) -> int:
        """Number that names the record in its partition while it is parked; -1 if it was not."""
        batch, place = self._batch.locate(self._place)
        return batch.s_offset_at(place)


# A callback and its receipt.  Type Any: each face has its own class of receipts.
Delivery = tuple[Callable[[Any], object], RecordReceipt]


class ReceiptState(NamedTuple):
    """State of a finished receipt, as it is pickled."""

    topic: str
    partition: int
    order: tuple[int, ...]
    place: int
    timestamp: int
    offset: int
    error: ClientError | None
    s_offset: int = OFFSET_UNKNOWN


def restored_receipt(receipt_type: type[RecordReceipt], told: ReceiptState) -> RecordReceipt:
    """Make the copy of a finished receipt, with a batch that is never sent."""
    batch = ProducerBatch(told.topic, told.partition, told.order, 0)
    batch.is_done = True
    batch.error = told.error
    if told.s_offset >= 0:
        batch.s_offset = told.s_offset - told.place
    if told.offset >= 0:
        batch.base_offset = told.offset - told.place
    return receipt_type(batch, told.place, told.timestamp)


def expired(batch: ProducerBatch, timeout_ms: int, problem: str) -> DeliveryTimedOut:
    """Make the error of a batch that has timed out, with the reason why it was not acknowledged."""
    where = f"{batch.topic} [{batch.partition}]"
    because = f": {batch.last_error or problem}" if batch.last_error or problem else ""
    known = "it may be in the log or not" if batch.was_sent else "it was never sent"
    records = "1 record was" if batch.count == 1 else f"{batch.count} records were"
    return DeliveryTimedOut(
        f"{records} not acknowledged by {where} within {timeout_ms} ms ({known}){because}"
    )
