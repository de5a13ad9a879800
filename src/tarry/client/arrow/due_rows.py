"""Due rows: the columns that say when rows are due become what their topic takes.

That is headers or the timestamp, as the producer's `send` makes it of its arguments, by the same
functions.  A row in which all of these columns are null stays an ordinary record.  The columns have
the names that a `DueNames` gives: those of `ArrowProducer` and of Spark's sink differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tarry.base.limits import SCHEDULE_HEADERS_MAX
from tarry.base.schedule_headers import HEADER_NAMES
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.arrow.outgoing_rows import HEADERS, KEY, PARTITION, TIMESTAMP, plain_headers
from tarry.client.core.delays import BY_TIMESTAMP
from tarry.client.core.producer.due import (
    DueGiven,
    DueNames,
    check_own_headers,
    headers_of,
    timestamp_of,
)
from tarry.client.core.producer.partitioner import may_go_anywhere, partition_by_hash
from tarry.client.face.due import due_given

if TYPE_CHECKING:
    import pyarrow as pa

# Units of Arrow's times: how many of each are a millisecond.  Seconds are the other way round.
UNITS_PER_MS: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
MS_PER_SECOND: Final = 1_000


class DelayedTopic(NamedTuple):
    """Topic that delays records, as far as its due rows depend on it."""

    name: str
    # `BY_HEADER` or `BY_TIMESTAMP`.
    source: int
    partition_count: int
    is_crc32: bool


class DueRowRefused(ValueError):
    """Error for a row that cannot be meant; `row` is its number among the rows that were given."""

    def __init__(self, row: int, sentence: str) -> None:
        super().__init__(f"row {row}: {sentence}")
        self.row = row
        self.sentence = sentence


def due_mask(rows: pa.RecordBatch | pa.Table, names: DueNames) -> Any:
    """Return for each row whether one of the columns says when it is due, or has an id; None if
    there is no such column."""
    # Any: pyarrow's compute functions have no types.
    compute: Any = import_module("pyarrow.compute")
    is_due: Any = None
    for name in names:
        if name in rows.schema.names:
            is_given = rows.column(name).is_valid()
            is_due = is_given if is_due is None else compute.or_(is_due, is_given)
    return is_due


def dues_of(rows: pa.RecordBatch, names: DueNames) -> list[DueGiven]:
    """Return what each row asks for.  Raises DueRowRefused for what cannot be meant."""
    columns = [
        _values(rows.column(name)) if name in rows.schema.names else [None] * rows.num_rows
        for name in names
    ]
    dues: list[DueGiven] = []
    for row, (at, after, schedule_id) in enumerate(zip(*columns, strict=True)):
        try:
            dues.append(due_given(at, after, schedule_id, names))
        except (TypeError, ValueError) as error:
            raise DueRowRefused(row, str(error)) from None
    return dues


def _values(column: Any) -> list[Any]:
    """Return the values of a column; times and durations as whole milliseconds, rounded up so that
    no record is early."""
    arrow = load_pyarrow()
    kind = column.type
    if not (arrow.types.is_timestamp(kind) or arrow.types.is_duration(kind)):
        return list(column.to_pylist())
    counts = column.cast(arrow.int64()).to_pylist()
    if kind.unit == "s":
        return [None if count is None else count * MS_PER_SECOND for count in counts]
    per_ms = UNITS_PER_MS[kind.unit]
    return [None if count is None else -(-count // per_ms) for count in counts]


def records_of(
    topic: DelayedTopic, rows: pa.RecordBatch, dues: list[DueGiven], names: DueNames, now_ms: int
) -> pa.RecordBatch:
    """Return due rows as the topic takes them, without the columns of due times.

    In a topic that delays by timestamps they are sorted by these.  A batch waits as a whole there,
    until its last record is due: each due time needs batches of its own (`same_times`).

    Raises DueRowRefused for what cannot be meant, and SchedulingUnsupported for an id in a topic
    that delays by timestamps.
    """
    columns = {name: rows.column(name) for name in rows.schema.names if name not in names}
    own = _own_headers(rows, names)
    if topic.source == BY_TIMESTAMP:
        return _by_time(topic, columns, dues, names, now_ms)
    columns[HEADERS] = _headers(own, dues)
    if names.schedule_id in rows.schema.names:
        columns[PARTITION] = _partitions(topic, rows, dues)
    return _batch_of(columns)


# --- Topics that delay by timestamps


def _by_time(
    topic: DelayedTopic,
    columns: dict[str, pa.Array],
    dues: list[DueGiven],
    names: DueNames,
    now_ms: int,
) -> pa.RecordBatch:
    arrow = load_pyarrow()
    compute: Any = import_module("pyarrow.compute")
    own = columns.get(TIMESTAMP)
    has_own = [False] * len(dues) if own is None else own.is_valid().to_pylist()
    times: list[int] = []
    for row, (due, has_timestamp) in enumerate(zip(dues, has_own, strict=True)):
        try:
            at_ms = timestamp_of(due, topic.name, now_ms, has_timestamp=has_timestamp, names=names)
        except ValueError as error:
            raise DueRowRefused(row, str(error)) from None
        times.append(at_ms)
    columns[TIMESTAMP] = arrow.array(times, arrow.int64())
    # A stable order: rows that are due at the same time stay in theirs.
    return _batch_of(columns).take(compute.array_sort_indices(columns[TIMESTAMP]))


def same_times(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each timestamp; they are sorted by it."""
    first = 0
    for _, same in groupby(rows.column(TIMESTAMP).to_pylist()):
        count = sum(1 for _ in same)
        yield rows.slice(first, count)
        first += count


# --- Topics that delay by headers


class OwnHeaders(NamedTuple):
    """Headers of some rows: names and values one after the other, and how many each row has."""

    names: pa.Array
    values: pa.Array
    counts: list[int]


def _own_headers(rows: pa.RecordBatch, names: DueNames) -> OwnHeaders | None:
    """Return the headers that rows have themselves, None if there are none; refuse those that say
    when a record is due."""
    arrow = load_pyarrow()
    compute: Any = import_module("pyarrow.compute")
    column = plain_headers(rows.column(HEADERS)) if HEADERS in rows.schema.names else None
    if column is None or column.null_count == len(column):
        return None
    pairs = column.flatten()
    counts = compute.list_value_length(column).fill_null(0).to_pylist()
    found = OwnHeaders(pairs.field(0), pairs.field(1), counts)
    reserved = arrow.array([name.encode() for name in HEADER_NAMES], arrow.large_binary())
    place = compute.index(compute.is_in(found.names, value_set=reserved), True).as_py()
    if place >= 0:
        row = next(row for row, end in enumerate(accumulate(found.counts)) if end > place)
        try:
            check_own_headers([(found.names[place].as_py().decode(), b"")], names)
        except ValueError as error:
            raise DueRowRefused(row, str(error)) from None
    return found


def _headers(own: OwnHeaders | None, dues: list[DueGiven]) -> pa.Array:
    """Return the headers of rows: their own, and those that say when they are due."""
    arrow = load_pyarrow()
    compute: Any = import_module("pyarrow.compute")
    added = [headers_of(due) for due in dues]
    counts = [len(headers) for headers in added]
    pairs = [pair for headers in added for pair in headers]
    names = arrow.array([name.encode() for name, _ in pairs], arrow.large_binary())
    values = arrow.array([value for _, value in pairs], arrow.large_binary())
    if own is not None:
        parents = arrow.array([*_parents(own.counts), *_parents(counts)], arrow.int64())
        counts = [sum(both) for both in zip(counts, own.counts, strict=True)]
        _check_counts(counts)
        # A stable order: a row's own headers come first.
        order = compute.array_sort_indices(parents)
        names = arrow.concat_arrays([own.names, names]).take(order)
        values = arrow.concat_arrays([own.values, values]).take(order)
    ends = arrow.array(accumulate(counts, initial=0), arrow.int64())
    made = arrow.StructArray.from_arrays([names, values], names=["key", "value"])
    return arrow.LargeListArray.from_arrays(ends, made)


def _parents(counts: list[int]) -> Iterator[int]:
    """Yield the row of each header."""
    for row, count in enumerate(counts):
        for _ in range(count):
            yield row


def _check_counts(counts: list[int]) -> None:
    most = max(counts)
    if most > SCHEDULE_HEADERS_MAX:
        raise DueRowRefused(
            counts.index(most),
            f"it has {most} headers, and a topic that delays by headers takes "
            f"{SCHEDULE_HEADERS_MAX} of a record",
        )


def _partitions(topic: DelayedTopic, rows: pa.RecordBatch, dues: list[DueGiven]) -> pa.Array:
    """Return the partitions of rows: an id chooses that of a row with neither a key nor a
    partition."""
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
    arrow = load_pyarrow()
    return arrow.array(partitions, arrow.int64())


def _batch_of(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return load_pyarrow().RecordBatch.from_arrays(list(columns.values()), names=list(columns))
