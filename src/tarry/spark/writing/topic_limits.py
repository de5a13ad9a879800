"""Topic limits: what a topic's settings refuse, found by the task, before anything is frozen.

A frozen micro-batch that a broker refuses holds the query up until the topic is changed; rows that
no broker would take must fail their task instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tarry.client.arrow.finished_batches import FinishedBatch
from tarry.client.errors import BrokerError
from tarry.client.sync.publisher import Publisher
from tarry.spark.writing.plan import SinkRefused

if TYPE_CHECKING:
    import pyarrow as pa


class TopicLimits(NamedTuple):
    """Limits of one topic; None: not known, and the broker decides."""

    topic: str
    needs_keys: bool = False
    batch_bytes_max: int | None = None
    # How far a record's time may lie ahead.
    ahead_ms_max: int | None = None

    def check_rows(self, rows: pa.RecordBatch) -> None:
        """Refuse rows without a key where compaction needs one."""
        if not self.needs_keys:
            return
        names = rows.schema.names
        if "key" not in names or rows.column("key").null_count:
            raise SinkRefused(
                f"a row for topic {self.topic!r} has no key, and the topic is compacted "
                "(cleanup.policy): fill the column key"
            )

    def check_batch(self, batch: FinishedBatch, now_ms: int) -> None:
        """Refuse a batch that the topic's settings rule out."""
        if self.batch_bytes_max is not None and len(batch.data) > self.batch_bytes_max:
            raise SinkRefused(
                f"a batch of {batch.record_count} records for topic {self.topic!r} takes "
                f"{len(batch.data)} bytes, and its max.message.bytes is {self.batch_bytes_max}: "
                "raise that, or give a smaller kafka.batch.size"
            )
        if self.ahead_ms_max is not None and batch.timestamp_max > now_ms + self.ahead_ms_max:
            raise SinkRefused(
                f"a row for topic {self.topic!r} has a time that lies "
                f"{batch.timestamp_max - now_ms} ms ahead, and its message.timestamp.after.max.ms "
                f"is {self.ahead_ms_max}: mend the column timestamp, or leave it out"
            )


def read_limits(publisher: Publisher, topic: str) -> TopicLimits:
    """Ask for the settings of a topic; those that the user may not see limit nothing here."""
    try:
        entries = publisher.describe_topic_configs(topic)
    except BrokerError:
        return TopicLimits(topic)
    values = {entry.name: entry.value or "" for entry in entries}
    is_by_broker = values.get("message.timestamp.type") == "LogAppendTime"
    ahead = values.get("message.timestamp.after.max.ms", "")
    largest = values.get("max.message.bytes", "")
    return TopicLimits(
        topic,
        "compact" in values.get("cleanup.policy", ""),
        int(largest) if largest.isdigit() else None,
        int(ahead) if ahead.isdigit() and not is_by_broker else None,
    )
