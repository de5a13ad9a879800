"""Due rows: the columns deliverAt, deliverAfter and scheduleId become what their topic takes.

`tarry.client.arrow.due_rows` makes it of them, as `ArrowProducer` does.  What is added here: a task
refuses a row that no broker would take, before anything is frozen, and names it by its key.

Rows that are due later, or have an id, leave apart from the others, so that their batches alone
wait.  Where timestamps are due times, a batch waits as a whole until its last record is due: so
each due time has batches of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tarry.base.limits import DUE_MS_MAX
from tarry.client.arrow.due_rows import (
    DelayedTopic,
    DueRowRefused,
    due_mask,
    dues_of,
    records_of,
    same_times,
)
from tarry.client.arrow.outgoing_rows import KEY, VALUE
from tarry.client.core.delays import BY_TIMESTAMP
from tarry.client.core.producer.due import DueGiven, due_ms_of
from tarry.spark.writing.columns import DUE_NAMES
from tarry.spark.writing.plan import SinkRefused
from tarry.spark.writing.topic_limits import DELAY_MAX, TaskTopics
from tarry.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

# Characters of a row's key or value that a sentence shows, at most.
SHOWN_MAX: Final = 60


class RowPart(NamedTuple):
    """Part of some rows, without the columns of due times."""

    rows: pa.RecordBatch
    # They are due later, or have ids.
    is_due: bool = False
    # No row of another part may be in a batch with them.
    is_alone: bool = False


class DueRows:
    """Due rows of one task; each topic is asked once how it delays records."""

    def __init__(self, topics: TaskTopics, options: WriteOptions) -> None:
        self._topics = topics
        self._options = options
        self._delayed: dict[str, DelayedTopic] = {}

    def parts(self, topic: str, rows: pa.RecordBatch, now_ms: int) -> Iterator[RowPart]:
        """Yield the rows of a topic: first those that are due at once, then the others.

        Raises SinkRefused for a row that cannot be meant.  Raises SchedulingUnsupported for a topic
        that does not delay: for one that all rows go to, whatever is in them, else for one with a
        row that is due later or has an id.  Nothing was yielded then.
        """
        is_due = due_mask(rows, DUE_NAMES)
        if is_due is None:
            yield RowPart(rows)
            return
        # Any: pyarrow's compute functions have no types.
        compute: Any = import_module("pyarrow.compute")
        due_rows = rows.filter(is_due)
        later: list[RowPart] = []
        if due_rows.num_rows or self._options.topic is not None:
            delayed = self._delayed_topic(topic)
            if due_rows.num_rows:
                later = self._later(delayed, due_rows, now_ms)
        if due_rows.num_rows < rows.num_rows:
            given = [name for name in DUE_NAMES if name in rows.schema.names]
            yield RowPart(rows.filter(compute.invert(is_due)).drop_columns(given))
        yield from later

    def _delayed_topic(self, topic: str) -> DelayedTopic:
        known = self._delayed.get(topic)
        if known is None:
            count = self._topics.partition_count(topic)
            known = self._delayed[topic] = DelayedTopic(
                topic,
                self._topics.publisher.delay_source(topic),
                count,
                self._options.producer_settings.partitioner == "crc32",
            )
        return known

    def _later(self, topic: DelayedTopic, rows: pa.RecordBatch, now_ms: int) -> list[RowPart]:
        """Return due rows in parts.  Raises SinkRefused for what cannot be meant, and for a time
        that the topic refuses: nothing is frozen yet."""
        try:
            dues = dues_of(rows, DUE_NAMES)
            _check_delays(dues, self._topics.limits(topic.name).delay_ms_max, now_ms)
            records = records_of(topic, rows, dues, DUE_NAMES, now_ms)
        except DueRowRefused as error:
            raise _refused(topic, rows, error) from None
        if topic.source == BY_TIMESTAMP:
            return [RowPart(same, is_due=True, is_alone=True) for same in same_times(records)]
        return [RowPart(records, is_due=True)]


def _check_delays(dues: list[DueGiven], delay_ms_max: int | None, now_ms: int) -> None:
    """Refuse a row that is due later than the topic allows; None: it allows any time."""
    if delay_ms_max is None:
        return
    for row, due in enumerate(dues):
        ahead_ms = min(due_ms_of(due, now_ms), DUE_MS_MAX) - now_ms
        if ahead_ms > delay_ms_max:
            raise DueRowRefused(
                row,
                f"it is due in {ahead_ms} ms, and {DELAY_MAX} of the topic is {delay_ms_max}: "
                "raise that, or let the record be due sooner",
            )


def _refused(topic: DelayedTopic, rows: pa.RecordBatch, error: DueRowRefused) -> SinkRefused:
    """Make the error of a row, which its key names, or its value if it has none."""
    for name in (KEY, VALUE):
        content = rows.column(name)[error.row].as_py() if name in rows.schema.names else None
        if content is not None:
            named = f"with the {name} {content[:SHOWN_MAX]!r}"
            break
    else:
        named = "without key and value"
    return SinkRefused(f"the row {named} for topic {topic.name!r}: {error.sentence}")
