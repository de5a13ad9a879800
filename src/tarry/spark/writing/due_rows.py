"""Due rows: the columns deliverAt, deliverAfter and scheduleId become what their topic takes.

That is headers or the timestamp, as the producer's `send` makes it of its arguments, by the same
functions.  A row in which all three are null stays an ordinary record.

Rows that are due later, or have an id, leave apart from the others, so that their batches alone
wait.  Where timestamps are due times, a batch waits as a whole until its last record is due: so
each due time has batches of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tarry.base.limits import DUE_MS_MAX, SCHEDULE_HEADERS_MAX
from tarry.base.schedule_headers import HEADER_NAMES
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.core.delays import BY_TIMESTAMP
from tarry.client.core.producer.due import (
    DueGiven,
    check_own_headers,
    due_ms_of,
    headers_of,
    timestamp_of,
)
from tarry.client.core.producer.partitioner import may_go_anywhere, partition_by_hash
from tarry.client.face.due import due_given
from tarry.spark.writing.columns import DUE_NAMES
from tarry.spark.writing.plan import SinkRefused
from tarry.spark.writing.topic_limits import DELAY_MAX, TaskTopics
from tarry.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

KEY: Final = "key"
HEADERS: Final = "headers"
PARTITION: Final = "partition"
TIMESTAMP: Final = "timestamp"

MICROSECONDS: Final = 1_000

# Characters of a row's key or value that a sentence shows, at most.
SHOWN_MAX: Final = 60


class RowPart(NamedTuple):
    """Part of some rows, without the columns of due times."""

    rows: pa.RecordBatch
    # They are due later, or have ids.
    is_due: bool = False
    # No row of another part may be in a batch with them.
    is_alone: bool = False


class DelayedTopic(NamedTuple):
    """Topic that delays records, as far as its due rows depend on it."""

    name: str
    # `BY_HEADER` or `BY_TIMESTAMP`.
    source: int
    partition_count: int
    is_crc32: bool
    # How far ahead a record may be due; None: any time.
    delay_ms_max: int | None


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
        given = [name for name in DUE_NAMES if name in rows.schema.names]
        if not given:
            yield RowPart(rows)
            return
        # Any: pyarrow's compute functions have no types.
        compute: Any = import_module("pyarrow.compute")
        is_due = rows.column(given[0]).is_valid()
        for name in given[1:]:
            is_due = compute.or_(is_due, rows.column(name).is_valid())
        due_rows = rows.filter(is_due)
        later: list[RowPart] = []
        if due_rows.num_rows or self._options.topic is not None:
            delayed = self._delayed_topic(topic)
            later = [*_parts_of(delayed, due_rows, given, now_ms)]
        if due_rows.num_rows < rows.num_rows:
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
                self._topics.limits(topic).delay_ms_max,
            )
        return known


def _parts_of(
    topic: DelayedTopic, rows: pa.RecordBatch, given: list[str], now_ms: int
) -> Iterator[RowPart]:
    if not rows.num_rows:
        return
    dues = _dues(topic, rows, now_ms)
    columns = {name: rows.column(name) for name in rows.schema.names if name not in given}
    if topic.source == BY_TIMESTAMP:
        yield from _by_time(topic, rows, columns, dues, now_ms)
        return
    columns[HEADERS] = _headers(topic, rows, dues)
    partitions = _partitions(topic, rows, dues)
    if partitions is not None:
        columns[PARTITION] = partitions
    yield RowPart(_batch_of(columns), is_due=True)


def _values(rows: pa.RecordBatch) -> Iterator[tuple[Any, Any, Any]]:
    """Yield what each row has in the columns of due times: None where there is nothing."""
    arrow = load_pyarrow()
    columns: list[list[Any]] = []
    for name in DUE_NAMES:
        if name not in rows.schema.names:
            columns.append([None] * rows.num_rows)
            continue
        column = rows.column(name)
        if arrow.types.is_timestamp(column.type):
            # Rounded up to whole milliseconds, so that no record is early.
            times = column.cast(arrow.timestamp("us", column.type.tz)).cast(arrow.int64())
            columns.append(
                [None if time is None else -(-time // MICROSECONDS) for time in times.to_pylist()]
            )
        else:
            columns.append(column.to_pylist())
    return zip(*columns, strict=True)


def _dues(topic: DelayedTopic, rows: pa.RecordBatch, now_ms: int) -> list[DueGiven]:
    """Return what each row asks for.  Raises SinkRefused for what cannot be meant, and for a time
    that the topic refuses: nothing is frozen yet."""
    dues: list[DueGiven] = []
    for row, values in enumerate(_values(rows)):
        try:
            due = due_given(*values, DUE_NAMES)
        except ValueError as error:
            raise _refused(topic, rows, row, str(error)) from None
        ahead_ms = min(due_ms_of(due, now_ms), DUE_MS_MAX) - now_ms
        if topic.delay_ms_max is not None and ahead_ms > topic.delay_ms_max:
            raise _refused(
                topic,
                rows,
                row,
                f"it is due in {ahead_ms} ms, and {DELAY_MAX} of the topic is "
                f"{topic.delay_ms_max}: raise that, or let the record be due sooner",
            )
        dues.append(due)
    return dues


def _refused(topic: DelayedTopic, rows: pa.RecordBatch, row: int, sentence: str) -> SinkRefused:
    """Make the error of a row, which its key names, or its value if it has none."""
    for name in (KEY, "value"):
        content = rows.column(name)[row].as_py() if name in rows.schema.names else None
        if content is not None:
            named = f"with the {name} {content[:SHOWN_MAX]!r}"
            break
    else:
        named = "without key and value"
    return SinkRefused(f"the row {named} for topic {topic.name!r}: {sentence}")


# --- Topics that delay by timestamps


def _by_time(
    topic: DelayedTopic,
    rows: pa.RecordBatch,
    columns: dict[str, pa.Array],
    dues: list[DueGiven],
    now_ms: int,
) -> Iterator[RowPart]:
    """Yield a part for each due time, in their order."""
    arrow = load_pyarrow()
    own = columns.get(TIMESTAMP)
    times: list[int] = []
    for row, due in enumerate(dues):
        has_timestamp = own is not None and own[row].is_valid
        try:
            at_ms = timestamp_of(
                due, topic.name, now_ms, has_timestamp=has_timestamp, names=DUE_NAMES
            )
        except ValueError as error:
            raise _refused(topic, rows, row, str(error)) from None
        times.append(at_ms)
    columns[TIMESTAMP] = arrow.array(times, arrow.int64())
    timed = _batch_of(columns)
    for _, same in groupby(sorted(range(len(times)), key=times.__getitem__), times.__getitem__):
        yield RowPart(timed.take(arrow.array(list(same))), is_due=True, is_alone=True)


# --- Topics that delay by headers


def _headers(topic: DelayedTopic, rows: pa.RecordBatch, dues: list[DueGiven]) -> pa.Array:
    """Return the headers of rows: their own, and those that say when they are due."""
    arrow = load_pyarrow()
    compute: Any = import_module("pyarrow.compute")
    added = [headers_of(due) for due in dues]
    counts = [len(headers) for headers in added]
    pairs = [pair for headers in added for pair in headers]
    names = arrow.array([name for name, _ in pairs], arrow.large_string())
    values = arrow.array([value for _, value in pairs], arrow.large_binary())
    parents = arrow.array(
        [row for row, count in enumerate(counts) for _ in range(count)], arrow.int64()
    )
    own = rows.column(HEADERS) if HEADERS in rows.schema.names else None
    if own is not None and own.null_count < len(own):
        pair = arrow.struct([("key", arrow.large_string()), ("value", arrow.large_binary())])
        own = own.cast(arrow.large_list(pair))
        own_pairs, own_parents = own.flatten(), compute.list_parent_indices(own)
        own_names = own_pairs.field(0)
        _check_own_headers(topic, rows, own_names, own_parents)
        own_counts = compute.list_value_length(own).fill_null(0).to_pylist()
        counts = [sum(both) for both in zip(counts, own_counts, strict=True)]
        _check_counts(topic, rows, counts)
        parents = arrow.concat_arrays([own_parents, parents])
        # A stable order: a row's own headers come first.
        order = compute.array_sort_indices(parents)
        names = arrow.concat_arrays([own_names, names]).take(order)
        values = arrow.concat_arrays([own_pairs.field(1), values]).take(order)
    ends = arrow.array(accumulate(counts, initial=0), arrow.int64())
    made = arrow.StructArray.from_arrays([names, values], names=["key", "value"])
    return arrow.LargeListArray.from_arrays(ends, made)


def _check_own_headers(
    topic: DelayedTopic, rows: pa.RecordBatch, names: pa.Array, parents: pa.Array
) -> None:
    """Refuse a row whose own headers say when it is due."""
    arrow = load_pyarrow()
    compute: Any = import_module("pyarrow.compute")
    found = compute.is_in(names, value_set=arrow.array(HEADER_NAMES, arrow.large_string()))
    first = compute.index(found, True).as_py()
    if first < 0:
        return
    try:
        check_own_headers([(names[first].as_py(), b"")], DUE_NAMES)
    except ValueError as error:
        raise _refused(topic, rows, parents[first].as_py(), str(error)) from None


def _check_counts(topic: DelayedTopic, rows: pa.RecordBatch, counts: list[int]) -> None:
    most = max(counts)
    if most > SCHEDULE_HEADERS_MAX:
        raise _refused(
            topic,
            rows,
            counts.index(most),
            f"it has {most} headers, and a topic that delays by headers takes "
            f"{SCHEDULE_HEADERS_MAX} of a record",
        )


def _partitions(topic: DelayedTopic, rows: pa.RecordBatch, dues: list[DueGiven]) -> pa.Array | None:
    """Return the partitions of rows if ids choose some of them: of rows with neither a key nor a
    partition."""
    arrow = load_pyarrow()
    if not any(due.schedule_id for due in dues):
        return None
    nulls = [None] * len(dues)
    names = rows.schema.names
    partitions = rows.column(PARTITION).to_pylist() if PARTITION in names else list(nulls)
    keys = rows.column(KEY).to_pylist() if KEY in names else nulls
    for row, due in enumerate(dues):
        is_free = partitions[row] is None and may_go_anywhere(keys[row], topic.is_crc32)
        if due.schedule_id and is_free:
            partitions[row] = partition_by_hash(
                due.schedule_id, topic.partition_count, topic.is_crc32
            )
    return arrow.array(partitions, arrow.int32())


def _batch_of(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return load_pyarrow().RecordBatch.from_arrays(list(columns.values()), names=list(columns))
