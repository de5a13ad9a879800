"""Kinds of events, as they stand in `__tarry_events`: one JSON object a record.

Each record has `kind` and `v`, the version of its form: a reader skips kinds and versions that it
does not know.  Times are calendar ms, waits are ms.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

VERSION: Final = 1


class BrokerEvent(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="broker", omit_defaults=True
):
    """Event of the broker as a whole."""

    v: int
    at_ms: int
    broker: int
    # "started", "stopped", "stalled" or "counted"; the last has counts since the event before it.
    what: str
    # Time for which the process did not run, in ms.
    stalled_ms: int = 0
    # Number of flush rounds that have ended.
    flushes: int = 0
    # Number of events that the topic lacks: there were too many at once, or the disk failed.
    dropped: int = 0


class OperationsEvent(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="operations"
):
    """Event of all operations of one purgatory and one topic or group that ended in an interval."""

    v: int
    at_ms: int
    broker: int
    # Length of the interval, which ends at `at_ms`.
    interval_ms: int
    purgatory: str
    # Name of the topic or group; "" for operations of several topics, or of neither.
    subject: str
    completed: int
    # Number of these operations that completed by their deadline.
    expired: int
    sum_ms: int
    longest_ms: int
    # Number of operations in each bucket, by the bucket's number: 0 for a wait of 0 ms, n for a
    # wait of 2 ** ((n - 1) / 2) ms or more.
    buckets: dict[str, int]


class OperationEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="operation"):
    """Event of one operation: the longest of an interval, or one that expired."""

    v: int
    at_ms: int
    broker: int
    purgatory: str
    subject: str
    # What the operation waited for: `topic-partition`, or group and member.
    key: str
    waited_ms: int
    expired: bool


class GroupNoteEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="group"):
    """Event of a group: a note, as `tarry groups why --json` shows it."""

    v: int
    at_ms: int
    broker: int
    group: str
    # Kind of the note: MemberRemoved, RebalanceBegan, RoundChanged, GenerationBegan, BecameStable,
    # BecameEmpty, AssignmentMissing or AppendFailed; `note` has its fields.
    what: str
    note: dict[str, Any]


class LagEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="lag"):
    """Event of a group that has committed an offset for a partition in an interval."""

    v: int
    at_ms: int
    broker: int
    group: str
    topic: str
    partition: int
    committed: int
    # Offset up to which a consumer could read; -1 if the partition does not exist here.
    end: int


class ScheduleEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="schedule"):
    """Event of a topic whose records waited, were released, taken back or refused in an interval.

    Records are those of the interval, what waits is that of now, in the partitions that the broker
    leads.
    """

    v: int
    at_ms: int
    broker: int
    interval_ms: int
    topic: str
    parked: int
    released: int
    cancelled: int
    refused: int
    pending: int
    pending_bytes: int
    # -1 if nothing waits.
    furthest_due_ms: int
    # Late by the time from when a record was due until it counted, in the buckets of `operations`.
    lateness: dict[str, int]
    longest_late_ms: int


Event = BrokerEvent | OperationsEvent | OperationEvent | GroupNoteEvent | LagEvent | ScheduleEvent
