"""Kinds of events, as they stand in `__tarry_events`: one JSON object a record.

Each has `kind` and `v`, the version of its form: a reader passes over kinds and versions that it
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
    # started, stopped, stalled, or counted: what follows was counted since the event before.
    what: str
    # For how long the process did not run.
    stalled_ms: int = 0
    # Flush rounds that have ended.
    flushes: int = 0
    # Events that are missing in the topic, because there were too many at once or the disk failed.
    dropped: int = 0


class OperationsEvent(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="operations"
):
    """Event of all operations of one purgatory and one topic or group that ended in an interval."""

    v: int
    at_ms: int
    broker: int
    # The interval's length; it ends at `at_ms`.
    interval_ms: int
    purgatory: str
    # Topic or group; "" for operations of several topics, or of neither.
    subject: str
    completed: int
    # Those of them that their deadline completed.
    expired: int
    sum_ms: int
    longest_ms: int
    # Number of a bucket to the operations in it: 0 for a wait of 0 ms, n for one of
    # 2 ** ((n - 1) / 2) ms or more.
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
    """Event of a group: a note, as `tarry groups why --json` knows it."""

    v: int
    at_ms: int
    broker: int
    group: str
    # MemberRemoved, RebalanceBegan, RoundChanged, GenerationBegan, BecameStable, BecameEmpty,
    # AssignmentMissing or AppendFailed; its fields are in `note`.
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
    # The end that a consumer could read to; -1 if the partition is gone.
    end: int


Event = BrokerEvent | OperationsEvent | OperationEvent | GroupNoteEvent | LagEvent
