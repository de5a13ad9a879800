"""Rows of tables against record objects: the same batches, in the same partitions."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tarry.client.core.producer.partitioner import partition_for_key
from tarry.records.builder import BatchBuilder
from tarry.records.from_columns import HEAD_BYTES_MAX, BytesColumn, RecordRows, append_rows
from tarry.records.record import decode_records

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")

from tarry.client.arrow.outgoing_rows import OutgoingRows  # noqa: E402

NOW_MS = 1_700_000_000_000
# Each makes tables of pyarrow, which costs milliseconds.
EXAMPLES = 40
SIZE_MAX = 10_000_000

PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES = {
    "key": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "value": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "headers": [pa.list_(PAIR), pa.large_list(PAIR)],
    "partition": [pa.int8(), pa.int32(), pa.uint64()],
    "timestamp": [pa.timestamp("ms", "UTC"), pa.timestamp("ms"), pa.int64()],
}

contents = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=300)
rows = st.fixed_dictionaries(
    {
        "key": contents,
        "value": contents,
        "headers": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.text(max_size=5), "value": contents})),
        "partition": st.none() | st.integers(0, 3),
        "timestamp": st.none() | st.integers(0, 2**52),
    }
)


@st.composite
def tables(draw: Any) -> Any:
    """A table in several chunks that begin anywhere in their buffers."""
    names = [
        "value",
        *draw(st.lists(st.sampled_from(list(TYPES)[:1] + list(TYPES)[2:]), unique=True)),
    ]
    kinds = {name: draw(st.sampled_from(TYPES[name])) for name in names}
    chunks = []
    for part in draw(st.lists(st.lists(rows, max_size=12), min_size=1, max_size=3)):
        first = draw(st.integers(0, len(part)))
        columns = {name: pa.array([row[name] for row in part], kinds[name]) for name in names}
        chunks.append(pa.table(columns).slice(first))
    return pa.concat_tables(chunks)


def expected(table: Any) -> list[tuple[Any, ...]]:
    plain = table
    if "timestamp" in table.column_names:
        number = table.column_names.index("timestamp")
        plain = table.set_column(number, "timestamp", table["timestamp"].cast(pa.int64()))
    return [
        (
            NOW_MS if row.get("timestamp") is None else row["timestamp"],
            row.get("key"),
            row["value"],
            [(one["key"], one["value"]) for one in row.get("headers") or []],
        )
        for row in plain.to_pylist()
    ]


def records_of(builder: BatchBuilder) -> list[tuple[Any, ...]]:
    records = decode_records(builder.build(), size_max=SIZE_MAX)
    return [(one.timestamp, one.key, one.value, one.headers) for one in records]


def everywhere(rows: RecordRows) -> bytes:
    return b"".join(row.to_bytes(4, "little") for row in range(rows.row_count))


@settings(max_examples=EXAMPLES)
@given(tables())
def test_rows_become_the_records_that_objects_become(table: Any):
    found: list[tuple[Any, ...]] = []
    for part in OutgoingRows(table).parts(NOW_MS):
        builder = BatchBuilder()
        assert append_rows(builder, part, everywhere(part), 0, SIZE_MAX) == part.row_count
        found += records_of(builder)

    assert found == expected(table)


@settings(max_examples=EXAMPLES)
@given(tables(), st.booleans())
def test_rows_go_where_their_keys_or_their_column_say(table: Any, is_crc32: bool):
    for part in OutgoingRows(table).parts(NOW_MS):
        places = part.split(4, is_crc32)
        chosen = [name for name in table.column_names if name in ("key", "partition")]
        given_rows = table.select(chosen).to_pylist() if chosen else [{}] * table.num_rows

        assert sorted(b"".join(places)) == sorted(everywhere(part))
        for index, numbers in enumerate(places):
            for start in range(0, len(numbers), 4):
                row = given_rows[int.from_bytes(numbers[start : start + 4], "little")]
                assert index == partition_of(row, is_crc32)


def partition_of(row: dict[str, Any], is_crc32: bool) -> int:
    if row.get("partition") is not None:
        return int(row["partition"])
    key = row.get("key")
    if key is None or (is_crc32 and not key):
        return 4
    return zlib.crc32(key) % 4 if is_crc32 else partition_for_key(key, 4)


@settings(max_examples=EXAMPLES)
@given(tables(), st.integers(0, 700))
def test_batches_are_as_large_as_they_may_be(table: Any, size_max: int):
    for part in OutgoingRows(table).parts(NOW_MS):
        places = everywhere(part)
        first = 0
        while first < part.row_count:
            builder = BatchBuilder()
            count = append_rows(builder, part, places, first, size_max)
            assert count >= 1
            assert builder.size <= size_max or count == 1
            following = first + count
            if following < part.row_count:
                assert builder.size + part.body_bytes(following) + HEAD_BYTES_MAX > size_max
            first = following


@given(
    st.binary(max_size=64), st.binary(max_size=64), st.integers(-70, 70), st.integers(0, 9),
)  # fmt: skip
def test_places_that_are_not_there_are_an_error(data: bytes, ends: bytes, base: int, bit: int):
    column = BytesColumn(data, ends, base, data[:1], bit)
    rows = RecordRows(3, column, column, None, bytes(24), None)

    try:
        builder = BatchBuilder()
        append_rows(builder, rows, everywhere(rows), 0, SIZE_MAX)
    except (ValueError, IndexError):
        return
    assert len(records_of(builder)) == 3


def test_a_row_without_a_header_key_is_refused():
    table = pa.table(
        {"value": [b"v"], "headers": pa.array([[{"key": None, "value": b"x"}]], pa.list_(PAIR))}
    )
    (part,) = OutgoingRows(table).parts(NOW_MS)

    with pytest.raises(ValueError, match="a header's key is null"):
        part.largest()


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"key": [b"k"]}, ValueError, "needs a column value"),
        ({"value": [b"v"], "offset": [1]}, ValueError, "column 'offset' is no part of a record"),
        ({"value": [1]}, TypeError, "column value is of type int64"),
        ({"value": [b"v"], "partition": [4]}, ValueError, "the partitions 0 to 3"),
        ({"value": [b"v"], "partition": [-1]}, ValueError, "has -1, and partitions go from 0"),
        ({"value": [b"v"], "partition": [2**40]}, ValueError, "partitions go from 0"),
        ({"value": [b"v"], "partition": ["1"]}, TypeError, "not of integers"),
        ({"value": [b"v"], "timestamp": [-5]}, ValueError, "before 1970"),
        ({"value": [b"v"], "timestamp": ["now"]}, TypeError, "neither a timestamp nor"),
        ({"value": [b"v"], "headers": [[b"x"]]}, TypeError, "not list<struct<key"),
        (
            {"value": [b"v"], "headers": [[{"key": "h", "value": 1}]]},
            TypeError,
            "column headers.value is of type int64",
        ),
    ],
)
def test_wrong_tables_are_refused(columns: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        OutgoingRows(pa.table(columns)).check_partitions(4)


def test_text_dictionaries_maps_and_times_of_other_units_are_taken():
    table = pa.table(
        {
            "value": pa.array(["one", "two", "one"]).dictionary_encode(),
            "key": pa.array(["ü", None, ""], pa.large_string()),
            "headers": pa.array([[("h", b"x")], None, []], pa.map_(pa.string(), pa.binary())),
            "timestamp": pa.array([5_999, None, 7_000], pa.timestamp("us")),
        }
    )
    (part,) = OutgoingRows(table).parts(NOW_MS)
    builder = BatchBuilder()
    append_rows(builder, part, everywhere(part), 0, SIZE_MAX)

    assert records_of(builder) == [
        (5, "ü".encode(), b"one", [("h", b"x")]),
        (NOW_MS, None, b"two", []),
        (7, b"", b"one", []),
    ]


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match=r"send takes a pyarrow.Table.*not list"):
        OutgoingRows([b"v"])


def test_a_large_column_is_taken_in_parts():
    value = pa.array([bytes(1024 * 1024)])
    table = pa.table({"value": pa.chunked_array([value] * 200)})

    sizes = [part.row_count for part in OutgoingRows(table).parts(NOW_MS)]

    assert sum(sizes) == 200
    assert max(sizes) <= 64
