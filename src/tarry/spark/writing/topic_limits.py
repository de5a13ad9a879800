"""Topic limits: what a topic's settings refuse, found by the task, before anything is frozen.

A frozen micro-batch that a broker refuses holds the query up until the topic is changed; rows that
no broker would take must fail their task instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tarry.base.limits import SCHEDULE_ID_BYTES_MAX
from tarry.client.arrow.finished_batches import FinishedBatch
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.errors import BrokerError
from tarry.client.sync.publisher import Publisher
from tarry.spark.writing.plan import SinkRefused
from tarry.spark.writing.target import topic_to_write

if TYPE_CHECKING:
    import pyarrow as pa

AFTER_MAX: Final = "message.timestamp.after.max.ms"
DELAY_MAX: Final = "delay.max.ms"
BEFORE_MAX: Final = "message.timestamp.before.max.ms"

# A limit of so many milliseconds is none: Kafka's default of how far behind a time may lie.
UNLIMITED: Final = 2**63 - 1


class TopicLimits(NamedTuple):
    """Limits of one topic; None: not known, and the broker decides."""

    topic: str
    needs_keys: bool = False
    batch_bytes_max: int | None = None
    # How far a record's time may lie ahead, and how far behind.
    ahead_ms_max: int | None = None
    behind_ms_max: int | None = None
    # How far a record's due time may lie ahead.
    delay_ms_max: int | None = None
    # Whether a record's time is its due time.
    is_timestamp_due: bool = False
    # Whether the key of a record that waits is its id.
    is_named_by_key: bool = False

    def check_rows(self, rows: pa.RecordBatch, now_ms: int, *, is_due: bool = False) -> None:
        """Refuse rows without a key where compaction needs one, rows that are too old, and rows
        that are to wait (`is_due`) with a key that is too long for an id."""
        names = rows.schema.names
        if self.needs_keys and ("key" not in names or rows.column("key").null_count):
            raise SinkRefused(
                f"a row for topic {self.topic!r} has no key, and the topic is compacted "
                "(cleanup.policy): fill the column key"
            )
        if is_due and self.is_named_by_key and "key" in names:
            self._check_longest(longest(rows.column("key")))
        if self.behind_ms_max is not None and "timestamp" in names:
            self._check_oldest(oldest_ms(rows.column("timestamp")), self.behind_ms_max, now_ms)

    def _check_longest(self, key_bytes: int) -> None:
        if key_bytes > SCHEDULE_ID_BYTES_MAX:
            raise SinkRefused(
                f"a row for topic {self.topic!r} that is to wait has a key of {key_bytes} bytes, "
                f"and with delay.replace=key {SCHEDULE_ID_BYTES_MAX} are the most: give it a "
                "shorter key"
            )

    def _check_oldest(self, time_ms: int | None, behind_ms_max: int, now_ms: int) -> None:
        if time_ms is not None and time_ms < now_ms - behind_ms_max:
            raise SinkRefused(
                f"a row for topic {self.topic!r} has a time that lies {now_ms - time_ms} ms back, "
                f"and its {BEFORE_MAX} is {behind_ms_max}: raise that, or give no time that "
                "is so old"
            )

    def check_batch(self, batch: FinishedBatch, now_ms: int) -> None:
        """Refuse a batch that the topic's settings rule out."""
        if self.batch_bytes_max is not None and len(batch.data) > self.batch_bytes_max:
            raise SinkRefused(
                f"a batch of {batch.record_count} records for topic {self.topic!r} takes "
                f"{len(batch.data)} bytes, and its max.message.bytes is {self.batch_bytes_max}: "
                "raise that, or give a smaller kafka.batch.size"
            )
        setting, ahead_ms_max = AFTER_MAX, self.ahead_ms_max
        if self.is_timestamp_due:
            setting, ahead_ms_max = DELAY_MAX, self.delay_ms_max
        if ahead_ms_max is not None and batch.timestamp_max > now_ms + ahead_ms_max:
            raise SinkRefused(
                f"a row for topic {self.topic!r} has a time that lies "
                f"{batch.timestamp_max - now_ms} ms ahead, and its {setting} "
                f"is {ahead_ms_max}: mend the column timestamp, or leave it out"
            )


def longest(column: pa.Array) -> int:
    """Return the size of the longest value of a column in bytes, 0 if all are null."""
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    return compute.max(compute.binary_length(column)).as_py() or 0


def oldest_ms(times: pa.Array) -> int | None:
    """Return the first of some times in ms since 1970; None if all are null."""
    arrow = load_pyarrow()
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    if arrow.types.is_timestamp(times.type):
        times = times.cast(arrow.timestamp("ms", times.type.tz), safe=False).cast(arrow.int64())
    found: int | None = compute.min(times).as_py()
    return found


def time_limit_ms(values: Mapping[str, str], name: str) -> int | None:
    """Return how far times of records may lie from now, by a topic's setting; None: anywhere."""
    if values.get("message.timestamp.type") == "LogAppendTime":
        return None
    return limit_ms(values, name)


def limit_ms(values: Mapping[str, str], name: str) -> int | None:
    """Return a topic's limit in milliseconds; None: there is none."""
    text = values.get(name, "")
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None


class TaskTopics:
    """Topics that one task writes to; each is asked once for its partitions and its limits."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self._partition_counts: dict[str, int] = {}
        self._limits: dict[str, TopicLimits] = {}

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions.  Raises SinkInterrupted if the topic is not there."""
        count = self._partition_counts.get(topic)
        if count is None:
            count = len(topic_to_write(self.publisher, topic).partitions)
            self._partition_counts[topic] = count
        return count

    def limits(self, topic: str) -> TopicLimits:
        """Return what the topic's settings refuse."""
        limits = self._limits.get(topic)
        if limits is None:
            limits = self._limits[topic] = read_limits(self.publisher, topic)
        return limits


def read_limits(publisher: Publisher, topic: str) -> TopicLimits:
    """Ask for the settings of a topic; those that the user may not see limit nothing here."""
    try:
        entries = publisher.describe_topic_configs(topic)
    except BrokerError:
        return TopicLimits(topic)
    values = {entry.name: entry.value or "" for entry in entries}
    largest = values.get("max.message.bytes", "")
    return TopicLimits(
        topic,
        "compact" in values.get("cleanup.policy", ""),
        int(largest) if largest.isdigit() else None,
        time_limit_ms(values, AFTER_MAX),
        time_limit_ms(values, BEFORE_MAX),
        limit_ms(values, DELAY_MAX),
        (values.get("delay.enable"), values.get("delay.source")) == ("true", "timestamp"),
        (values.get("delay.enable"), values.get("delay.replace")) == ("true", "key"),
    )
