"""Due: a record that is due later or has a schedule id, in the form that its topic takes.

The topic's delay source (`delays`) decides whether the user's arguments become headers or the
timestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tarry.base.schedule_headers import (
    DELIVER_AFTER,
    DELIVER_AT,
    HEADER_NAMES,
    SCHEDULE_CANCEL,
    SCHEDULE_ID,
)
from tarry.client.core.delays import BY_HEADER
from tarry.client.core.producer.partitioner import ANY_PARTITION, partition_of_function
from tarry.client.errors import SchedulingUnsupported
from tarry.records.builder import Headers

if TYPE_CHECKING:
    from tarry.client.core.producer.core import ProducerCore
    from tarry.client.core.producer.intake import Appended

UNSAID: Final = -1


class DueNames(NamedTuple):
    """Names, in sentences, of what a user gives for a delayed record."""

    deliver_at: str = "deliver_at"
    deliver_after: str = "deliver_after"
    schedule_id: str = "schedule_id"


ARGUMENT_NAMES: Final = DueNames()


class DueGiven(NamedTuple):
    """Arguments of a user for a delayed record; -1 and an empty id mean that none was given."""

    deliver_at_ms: int = UNSAID
    deliver_after_ms: int = UNSAID
    schedule_id: bytes = b""
    is_cancel: bool = False


def check_own_headers(headers: Headers | None, names: DueNames = ARGUMENT_NAMES) -> None:
    """Raise ValueError if the user's headers have a name that is set for a delayed record."""
    for name, _ in headers or ():
        if name in HEADER_NAMES:
            raise ValueError(
                f"headers holds {name}, and {names.deliver_at}, {names.deliver_after} and "
                f"{names.schedule_id} set such headers: use the headers or these"
            )


def with_due(
    core: ProducerCore,
    record: Appended,
    due: DueGiven,
    source: int,
    now_wall_ms: int,
    *,
    has_timestamp: bool,
) -> Appended:
    """Return the record in the form of its topic, which is known, for this delay source."""
    topic, partition, timestamp, key, value, headers = record
    if source == BY_HEADER:
        if due.schedule_id and partition == ANY_PARTITION and core.partitioner.sticks(key):
            partition = _partition_of_id(core, topic, due.schedule_id)
        return topic, partition, timestamp, key, value, [*(headers or ()), *headers_of(due)]
    at_ms = timestamp_of(due, topic, now_wall_ms, has_timestamp=has_timestamp)
    return topic, partition, at_ms, key, value, headers


def due_ms_of(due: DueGiven, now_wall_ms: int) -> int:
    """Return when a record is due that is sent now; one with an id alone is due now."""
    if due.deliver_at_ms != UNSAID:
        return due.deliver_at_ms
    return now_wall_ms + max(due.deliver_after_ms, 0)


def timestamp_of(
    due: DueGiven,
    topic: str,
    now_wall_ms: int,
    *,
    has_timestamp: bool,
    names: DueNames = ARGUMENT_NAMES,
) -> int:
    """Return the timestamp of a record in a topic whose timestamps are due times.

    Raises SchedulingUnsupported for an id, and ValueError for a record with a timestamp of its own
    (`has_timestamp`).
    """
    if due.schedule_id:
        raise SchedulingUnsupported(
            f"topic {topic!r} has delay.source=timestamp, and ids of scheduled records are told by "
            f"headers: set delay.source=header on it to use {names.schedule_id}"
        )
    if has_timestamp:
        raise ValueError(
            f"topic {topic!r} has delay.source=timestamp, so a record's timestamp is when it is "
            f"due: give timestamp or {names.deliver_at}, not both"
        )
    return due_ms_of(due, now_wall_ms)


def _partition_of_id(core: ProducerCore, topic: str, schedule_id: bytes) -> int:
    """Return the partition that the id would choose as a key, so that all records of an id share
    it; any partition while the topic is not known."""
    known = core.metadata.topic(topic)
    if known is None:
        return ANY_PARTITION
    function = core.producer_settings.partition_function
    if function is not None:
        return partition_of_function(function, topic, schedule_id, len(known.partitions))
    return core.partitioner.choose(known, schedule_id)


def headers_of(due: DueGiven) -> Headers:
    """Return the headers that say this in a topic that delays by headers."""
    found: Headers = []
    if due.deliver_at_ms != UNSAID:
        found.append((DELIVER_AT, b"%d" % due.deliver_at_ms))
    if due.deliver_after_ms != UNSAID:
        found.append((DELIVER_AFTER, b"%d" % due.deliver_after_ms))
    if due.schedule_id:
        found.append((SCHEDULE_ID, due.schedule_id))
    if due.is_cancel:
        found.append((SCHEDULE_CANCEL, b"1"))
    return found
