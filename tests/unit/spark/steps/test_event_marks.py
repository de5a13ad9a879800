"""Marks on batches of rows: doubles in the order of their records, what is late, what passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from tests.unit.spark.steps.test_bucket_trees import StoredLeaves, digest

from tarry.spark.steps.buckets.chunks import BUCKET, CHUNK, chunk_of, pack, rows_of, unpack
from tarry.spark.steps.buckets.tree import BucketTree
from tarry.spark.steps.columns import ERROR, RECORD, RULE
from tarry.spark.steps.event_marks import DIGEST, MICROS, EventMarks
from tarry.spark.steps.seen_times import seen_leaves

SECOND = 1_000_000
WITHIN = 10 * SECOND
START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(*rows: tuple[int | None, int, int, str | None]) -> pa.RecordBatch:
    """Rows of event, second of the event time, offset, and rule."""
    records = [
        {"timestamp": START, "topic": "t", "partition": 0, "offset": offset}
        for _, _, offset, _ in rows
    ]
    kind = pa.struct(
        [
            ("timestamp", pa.timestamp("us", "UTC")),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
        ]
    )
    return pa.RecordBatch.from_pydict(
        {
            RECORD: pa.array(records, kind),
            RULE: pa.array([rule for *_, rule in rows], pa.string()),
            ERROR: pa.array([rule and "broken" for *_, rule in rows], pa.string()),
            DIGEST: pa.array([one and digest(one) for one, *_ in rows], pa.binary()),
            MICROS: pa.array([second * SECOND for _, second, *_ in rows], pa.int64()),
        }
    )


def rules(tree, batches, watermark=0):
    marked = list(EventMarks(watermark * SECOND, WITHIN, "told").marked(batches, tree))
    assert [one.schema for one in marked] == [one.schema for one in batches]
    return {
        row[RECORD]["offset"]: (row[RULE], row[ERROR]) for one in marked for row in one.to_pylist()
    }


def new_tree(leaves, root=None):
    return BucketTree(root, leaves, seen_leaves(WITHIN))


def test_the_record_that_was_written_first_is_the_one_that_counts():
    tree = new_tree(StoredLeaves())
    later = batch((1, 100, 7, None), (2, 100, 6, None))
    earlier = batch((None, 100, 4, "decode"), (1, 105, 3, None), (None, 100, 5, None))

    found = rules(tree, [later, earlier])

    assert found == {
        3: (None, None),
        4: ("decode", "broken"),
        5: (None, None),
        6: (None, None),
        7: ("duplicate", "told"),
    }


def test_an_event_is_seen_in_the_next_micro_batch_and_forgotten_behind_the_watermark():
    leaves = StoredLeaves()
    first = new_tree(leaves)
    rules(first, [batch((1, 100, 0, None), (2, 100, 1, None))])

    second = new_tree(leaves, first.root)
    found = rules(second, [batch((1, 110, 2, None), (2, 111, 3, None))], 99)
    # Known as a double, whatever the watermark; of another one it cannot be told any more.
    third = new_tree(leaves, second.root)
    behind = rules(third, [batch((1, 119, 4, None), (3, 119, 5, None))], 119)
    last = rules(new_tree(leaves, third.root), [batch((1, 119, 6, None))], 130)

    assert found == {2: ("duplicate", "told"), 3: (None, None)}
    assert behind[4] == ("duplicate", "told")
    assert behind[5][0] == last[6][0] == "late"
    assert behind[5][1] == (
        "the event is of 1970-01-01 00:01:59 UTC, and what came before 1970-01-01 00:01:59 UTC is "
        "forgotten: it may be a double or not"
    )


@pytest.mark.parametrize(
    ("second", "watermark", "rule"),
    [
        # Within ten seconds of the event of second 100, to the microsecond.
        (110, 99, "duplicate"),
        (111, 99, None),
        (90, 80, "duplicate"),
        (89, 80, None),
        # An id stays known as long as a double of it may come.
        (110, 110, "duplicate"),
        (110, 111, "late"),
        # An event at the watermark is late, where it is nobody's double.
        (111, 111, "late"),
        (112, 111, None),
    ],
)
def test_an_event_at_a_bound_is_marked_by_it(second, watermark, rule):
    leaves = StoredLeaves()
    first = new_tree(leaves)
    rules(first, [batch((1, 100, 0, None))])

    found = rules(new_tree(leaves, first.root), [batch((1, second, 1, None))], watermark)

    assert found[1][0] == rule


ROWS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 60)), max_size=40)


@given(st.lists(ROWS, max_size=5))
@settings(deadline=None, max_examples=50)
def test_an_event_passes_where_none_came_within(rounds):
    leaves, root, known, offset = StoredLeaves(), None, [], 0
    for rows in rounds:
        tree = new_tree(leaves, root)
        made = []
        for event, second in rows:
            made.append((event, second, offset, None))
            offset += 1

        found = rules(tree, [batch(*made)], watermark=-1)

        for event, second, place, _ in made:
            is_double = any(one == event and abs(time - second) <= 10 for one, time in known)
            assert found[place][0] == ("duplicate" if is_double else None)
            known.append((event, second))
        root = tree.root


def test_rows_come_out_of_their_chunks_as_they_went_in():
    rows = batch(*[(number or None, number, number, None) for number in range(50)])
    buckets = pa.array([number * 7 % 5 for number in range(50)], pa.int32())
    made = list(pack([rows.append_column(BUCKET, buckets), rows.slice(0, 0)]))

    assert made[0].column(BUCKET).to_pylist() == [0, 1, 2, 3, 4]
    chunk = rows_of(made[0].column(CHUNK)[1].as_buffer())
    assert chunk.column(DIGEST).to_pylist() == [digest(one) for one in range(3, 50, 5)]
    assert rows_of(chunk_of(chunk)) == chunk
    (out,) = unpack(made)
    assert out.schema == rows.schema
    by_time = [(MICROS, "ascending")]
    assert pa.table(out).sort_by(by_time) == pa.table(rows).sort_by(by_time)
    assert START + timedelta(0) == out.column(RECORD)[0].as_py()["timestamp"]
