"""Errors of the client: all that its users catch, with those of its links and settings.

Each text is a sentence for the user: what happened, where, what to do.

`is_retriable` says whether the same call may succeed later without a change.  The core has then
already tried until its deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base.errors import (
    ERRORS,
    UNKNOWN_TOPIC_OR_PARTITION,
    InvalidSetting as InvalidSetting,
    error_name,
)
from tarry.link.errors import (
    BrokerUnreachable as BrokerUnreachable,
    ClientError as ClientError,
    ConnectionLost as ConnectionLost,
    InvalidRequest as InvalidRequest,
    RequestTimedOut as RequestTimedOut,
    TimedOut as TimedOut,
    UnsupportedVersion as UnsupportedVersion,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tarry.records.record import Record

# Number of further errors of a request that the notes of an error list.
NOTES_MAX: Final = 10


class BrokerError(ClientError):
    """The broker answered with an error code of Kafka's: `code` is its number, `is_retriable` what
    Kafka says of it."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(f"{sentence} ({error_name(code)})")
        self.code = code
        known = ERRORS.get(code)
        self.is_retriable = known is not None and known.retriable


class UnknownTopic(BrokerError):
    """The topic, or the partition, is not there; `code` is Kafka's UNKNOWN_TOPIC_OR_PARTITION, also
    where the client has found it out by itself."""

    def __init__(self, sentence: str) -> None:
        ClientError.__init__(self, sentence)
        self.code = UNKNOWN_TOPIC_OR_PARTITION
        self.is_retriable = True


def broker_error(code: int, sentence: str) -> BrokerError:
    """Make the error of a code: UnknownTopic for a topic or partition that is not there."""
    if code == UNKNOWN_TOPIC_OR_PARTITION:
        return UnknownTopic(sentence)
    return BrokerError(code, sentence)


def raise_first(errors: Iterable[ClientError | None]) -> None:
    """Raise the first error of several outcomes, if there is one; its notes list the others."""
    outcomes = list(errors)
    failed = list(dict.fromkeys(error for error in outcomes if error is not None))
    if not failed:
        return
    first = failed[0]
    for other in failed[1:NOTES_MAX]:
        first.add_note(f"also: {other}")
    if len(outcomes) > 1:
        first.add_note(
            f"{outcomes.count(None)} of {len(outcomes)} were done; outcomes=True returns them all"
        )
    raise first


class TopicRecreated(ClientError):
    """The topic was deleted and created again; offsets of the old one mean nothing in the new
    one."""


class BufferFull(TimedOut):
    """`buffer.memory` stayed full for `max.block.ms`: the broker is slower than the sender."""


class RecordTooLarge(ClientError):
    """A record is larger than `max.request.size`, or than the broker's `max.message.bytes`."""


class PartitionerFailed(ClientError):
    """The user's partitioner raised an exception, or chose a partition that does not exist; the
    record was not sent."""


class SchedulingUnsupported(ClientError):
    """The topic does not support the given arguments for a delayed record, and the record was not
    sent.  Or the broker has no scheduled records: it is Apache Kafka, or an older Tarry."""


class DeliveryTimedOut(TimedOut):
    """A record was not acknowledged within `delivery.timeout.ms`; it may be in the log or not."""


class DeliveryFailed(ClientError):
    """Records were not delivered, and no call asked for their receipts: `count` of them, `first` is
    why the first one was not."""

    def __init__(self, count: int, first: ClientError) -> None:
        noun = "record was" if count == 1 else "records were"
        super().__init__(f"{count} {noun} not delivered; the first because: {first}")
        self.count = count
        self.first = first


class ProducerFailed(ClientError):
    """The producer is fenced or lost its id for good; only `close` works now."""


class OffsetOutOfRange(ClientError):
    """The offset is not in the log and `auto.offset.reset` is `none`."""


class LogTruncated(ClientError):
    """Records that were read are no longer in the log: an unclean leader took over."""


class CorruptRecords(ClientError):
    """Records that came from the broker cannot be decoded."""


class DecodeError(ClientError):
    """A codec of the consumer cannot decode a record; nothing behind it is handed out until `skip`
    or a seek.

    `topic` and `partition` say where it is, `record` has the bytes, `part` is `"key"` or
    `"value"`, whichever is at fault; `__cause__` is what the codec raised.
    """

    def __init__(
        self, sentence: str, topic: str, partition: int, record: Record, part: str
    ) -> None:
        super().__init__(sentence)
        self.topic = topic
        self.partition = partition
        self.record = record
        self.part = part
        self.is_skipped = False

    @property
    def offset(self) -> int:
        """Offset of the record."""
        return self.record.offset

    @property
    def data(self) -> bytes | None:
        """Bytes that do not decode."""
        return self.record.key if self.part == "key" else self.record.value

    def skip(self) -> None:
        """Skip the record: the next poll counts it as finished, and continues behind it."""
        self.is_skipped = True


class ConcurrentUse(ClientError):
    """Two threads use one consumer or admin client at the same time."""


class ClientForked(ClientError):
    """The client was made before a fork and is used in the child; make a new one there."""


class ClientClosed(ClientError):
    """The client was closed before this call, or while it waited."""


class CommitFailed(ClientError):
    """Offsets were not committed, because the partitions belong to another member now, or are about
    to: `is_retriable` tells whether the next poll may make it possible again."""

    def __init__(self, sentence: str, *, is_retriable: bool) -> None:
        super().__init__(sentence)
        self.is_retriable = is_retriable


class GroupFailed(ClientError):
    """The group refuses this member for good; every poll raises it again, only `close` works."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(f"{sentence} ({error_name(code)})")
        self.code = code


class AssignorFailed(ClientError):
    """An assignor of the user raised, or its assignment would leave a partition without a reader;
    the member that leads the group raises it from its polls, and joins again."""


class NotSubscribed(ClientError):
    """The call needs a subscription, a group or an assignment that is not there."""
