"""Compacted topics as clients see them: what is refused, what stays, what goes with the clock."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, a_batch, records_in

from tarry.base import errors
from tarry.broker.duties.compactions import CLOCK_DISTRUST_MS
from tarry.log.compaction.effort import STEP_UNITS
from tarry.records.builder import BatchBuilder
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.compression import NAMES

BACKOFF_MS = 1_000
SETTINGS = {
    "log.cleaner.backoff.ms": str(BACKOFF_MS),
    "log.index.interval.bytes": "100",
    "log.retention.check.interval.ms": "10000",
}
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
DAY_MS = 24 * 3_600_000


def someone_with(settings: dict[str, str] | None = None, **topic: str) -> Operator:
    """A broker with the compacted topic `orders`, in which each batch is a segment."""
    operator = Operator(BrokerByHand({**SETTINGS, **(settings or {})}))
    operator.create(ORDERS, **{"cleanup_policy": "compact", "segment_ms": "1", **topic})
    return operator


def keyed(*records: tuple[bytes | None, bytes | None], codec: int = 0, time: int = 0) -> bytes:
    builder = BatchBuilder()
    for key, value in records:
        builder.append(START_WALL_MS + time, key, value)
    return builder.build(codec)


def pass_time(operator: Operator, ms: int) -> None:
    for _ in range(ms // 100):
        operator.hand.turn(after_ms=100)
        operator.hand.settle()


def make_compact(operator: Operator) -> None:
    """Let a recovery point be written and the compaction find what is dirty."""
    pass_time(operator, 10_000)


def begin_compaction(operator: Operator) -> None:
    """Stop the clock in the middle of it."""
    log = operator.hand.broker.topics[ORDERS].partitions[0].log
    while not log.compaction.is_under_way:
        operator.hand.turn(*operator.hand.disk.complete_flushes(), after_ms=100)


def write_twice(operator: Operator, count: int = 10, *, time: int = 0) -> None:
    """Each key has two records but the last one, in segments of their own."""
    for number in range(count):
        operator.produce(keyed((b"k%d" % (number // 2), b"%d" % number), time=time + 2 * number))


def kept(operator: Operator, topic: str = ORDERS) -> list[int]:
    """Offsets that a reader from the begin gets."""
    offset = operator.list_offsets(EARLIEST, topic=topic).offset
    found: list[int] = []
    while True:
        records = records_in(operator.fetch(offset, topic=topic))
        if not records:
            return found
        found += [record.offset for record in records]
        offset = found[-1] + 1


# --- Produce.


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_records_without_a_key_are_refused_with_their_indexes(codec, timestamp_type):
    operator = someone_with(message_timestamp_type=timestamp_type)

    answer = operator.produce(
        keyed((b"a", b"1"), (None, b"2"), (b"", b"3"), (None, b"4"), codec=codec)
    )

    assert answer.error_code == errors.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert "key" in (answer.error_message or "")
    assert operator.list_offsets(LATEST).offset == 0


def test_a_topic_that_is_not_compacted_takes_records_without_a_key():
    operator = someone_with(cleanup_policy="delete")

    assert operator.produce(a_batch(b"1")).error_code == errors.NONE


def test_a_topic_becomes_compacted_without_a_restart():
    operator = someone_with(cleanup_policy="delete")
    write_twice(operator)

    operator.set(TOPIC, ORDERS, cleanup_policy="compact")
    make_compact(operator)

    assert operator.produce(a_batch(b"1")).error_code == errors.INVALID_RECORD
    assert kept(operator) == [1, 3, 5, 7, 8, 9]


# --- Compaction by the clock.


def test_what_is_outdated_goes():
    operator = someone_with()
    write_twice(operator)

    make_compact(operator)

    # The last segment is never touched: 8 and 9 have the same key.
    assert kept(operator) == [1, 3, 5, 7, 8, 9]
    assert operator.list_offsets(EARLIEST).offset == 0
    assert operator.list_offsets(LATEST).offset == 10


def test_a_topic_that_is_only_deleted_from_keeps_everything():
    operator = someone_with(cleanup_policy="delete")
    write_twice(operator)

    make_compact(operator)

    assert kept(operator) == list(range(10))


def test_offsets_by_time_are_those_of_records_that_are_left():
    operator = someone_with()
    write_twice(operator)

    make_compact(operator)

    found = [operator.list_offsets(START_WALL_MS + time).offset for time in range(0, 19, 2)]
    assert found == [1, 1, 3, 3, 5, 5, 7, 7, 8, 9]
    assert operator.list_offsets(MAX_TIMESTAMP).offset == 9


def test_a_log_that_is_clean_enough_waits():
    operator = someone_with(min_cleanable_dirty_ratio="0.6")
    write_twice(operator, 10)
    make_compact(operator)
    for number in range(4):
        operator.produce(keyed((b"k0", b"x"), time=100 + 2 * number))

    make_compact(operator)

    assert kept(operator) == [1, 3, 5, 7, 8, 9, 10, 11, 12, 13]


def test_records_younger_than_the_lag_stay():
    operator = someone_with(min_compaction_lag_ms=str(DAY_MS))
    write_twice(operator)

    make_compact(operator)

    assert kept(operator) == list(range(10))


def test_records_older_than_the_longest_lag_are_compacted_however_clean_the_log_is():
    operator = someone_with(min_cleanable_dirty_ratio="1", max_compaction_lag_ms="60000")
    write_twice(operator)

    pass_time(operator, 70_000)

    assert kept(operator) == [1, 3, 5, 7, 8, 9]


def test_segments_roll_when_what_is_in_them_must_be_compacted():
    operator = someone_with(segment_ms=str(7 * DAY_MS), max_compaction_lag_ms="60000")
    operator.produce(keyed((b"a", b"1")))

    operator.produce(keyed((b"a", b"2"), time=60_001))

    assert len(operator.hand.broker.topics[ORDERS].partitions[0].log.segments) == 2


def test_retention_leaves_a_topic_alone_that_is_only_compacted():
    operator = someone_with(retention_ms="1000", min_cleanable_dirty_ratio="1")
    write_twice(operator)

    make_compact(operator)

    assert kept(operator) == list(range(10))


def test_compact_and_delete_does_both():
    operator = someone_with(cleanup_policy="compact,delete", retention_ms="600000")
    write_twice(operator)
    make_compact(operator)
    compacted = kept(operator)

    pass_time(operator, 620_000)

    # The old connection was closed meanwhile, since it was silent.
    again = Operator(operator.hand)
    assert compacted == [1, 3, 5, 7, 8, 9]
    assert kept(again) == []
    assert again.list_offsets(EARLIEST).offset == 10


def test_deleted_records_are_gone_from_the_files_too():
    operator = someone_with(cleanup_policy="compact,delete")
    for number in range(10):
        operator.produce(keyed((b"k%d" % number, b"v" * 100), time=2 * number))
    operator.delete_records((0, 6))

    make_compact(operator)

    assert kept(operator) == [6, 7, 8, 9]
    assert operator.fetch(5).error_code == errors.OFFSET_OUT_OF_RANGE


def test_records_deleted_while_the_log_is_compacted_stay_deleted():
    operator = someone_with(cleanup_policy="compact,delete")
    write_twice(operator, 30)
    begin_compaction(operator)

    answer = operator.delete_records((0, 20))
    make_compact(operator)

    assert answer == [(20, errors.NONE)]
    assert kept(operator)[0] == 21
    operator.hand.crash()
    assert kept(Operator(operator.hand))[0] == 21


def test_a_topic_deleted_while_it_is_compacted_leaves_nothing():
    operator = someone_with()
    write_twice(operator, 30)
    begin_compaction(operator)

    operator.delete(ORDERS)
    pass_time(operator, 2_000)

    assert not [path for path in operator.hand.disk.paths() if path.startswith(ORDERS)]
    operator.create("other", cleanup_policy="compact", segment_ms="1")
    for number in range(4):
        operator.produce(keyed((b"k", b"v"), time=2 * number), topic="other")
    make_compact(operator)
    pass_time(operator, 60_000)
    assert kept(operator, "other") == [2, 3]


def test_the_dirtiest_log_comes_first_and_all_get_their_turn():
    operator = someone_with()
    names = ["a", "b", "c"]
    for name in names:
        operator.create(name, cleanup_policy="compact", segment_ms="1")
        for number in range(6):
            operator.produce(keyed((b"k", b"v"), time=2 * number), topic=name)

    make_compact(operator)

    assert [kept(operator, name) for name in names] == [[4, 5]] * 3


def test_a_full_disk_is_tried_again_later(caplog):
    operator = someone_with()
    write_twice(operator)
    disk = operator.hand.disk
    assert isinstance(disk, SimulatedDisk)
    disk.fail_writes(1, ".cleaned")

    make_compact(operator)
    pass_time(operator, 3_000)

    assert "cannot be compacted now" in caplog.text
    assert kept(operator) == [1, 3, 5, 7, 8, 9]
    assert not operator.hand.broker.is_stopped


def test_damage_found_by_compaction_stops_neither_broker_nor_other_logs(caplog):
    operator = someone_with()
    operator.create("other", cleanup_policy="compact", segment_ms="1")
    write_twice(operator)
    for number in range(6):
        operator.produce(keyed((b"k", b"v"), time=2 * number), topic="other")
    operator.hand.disk.flip_bit(f"orders-0/{0:020d}.log", 65)

    make_compact(operator)
    pass_time(operator, 3_000)

    assert "is damaged at offset 0" in caplog.text
    assert kept(operator, "other") == [4, 5]


def test_after_a_crash_the_log_is_still_compact_and_goes_on():
    operator = someone_with()
    write_twice(operator)
    make_compact(operator)

    operator.hand.crash()

    again = Operator(operator.hand)
    assert kept(again) == [1, 3, 5, 7, 8, 9]
    write_twice(again, time=1_000)
    make_compact(again)
    assert kept(again) == [11, 13, 15, 17, 18, 19]


def steps_until_clean(after_ms: int) -> int:
    """Turns that a compaction takes when they come so far apart."""
    operator = someone_with(segment_ms=str(DAY_MS), segment_bytes=str(1 << 20))
    for number in range(30):
        operator.produce(keyed(*[(b"k%d" % at, b"v" * 50) for at in range(1_000)], time=number))
    log = operator.hand.broker.topics[ORDERS].partitions[0].log
    turns = 0
    while log.compaction.cleaned_offset == 0:
        operator.hand.turn(*operator.hand.disk.complete_flushes(), after_ms=after_ms)
        turns += log.compaction.is_under_way
    return turns


def test_compaction_gives_way_when_turns_come_late():
    """They do when there is other work; then not every one of them does a step."""
    turns = steps_until_clean(1)

    busy_turns = steps_until_clean(12)

    assert busy_turns > turns


def test_a_step_is_bounded():
    """However much there is to do, each turn does a little of it."""
    turns = steps_until_clean(1)

    # 2 x 17,000 records at least, one unit each.
    assert turns > 34_000 // STEP_UNITS


def test_compaction_ends_when_the_topic_is_to_keep_everything():
    operator = someone_with()
    write_twice(operator)
    begin_compaction(operator)

    operator.set(TOPIC, "orders", cleanup_policy="delete")
    make_compact(operator)

    assert kept(operator) == list(range(10))
    compactions = operator.hand.broker.topics["orders"].partitions[0].log.compaction
    assert not compactions.is_under_way


def test_a_topic_that_is_to_be_compacted_again_is():
    operator = someone_with()
    write_twice(operator)
    begin_compaction(operator)

    operator.set(TOPIC, "orders", cleanup_policy="delete")
    make_compact(operator)
    operator.set(TOPIC, "orders", cleanup_policy="compact,delete")
    make_compact(operator)

    assert kept(operator) == [1, 3, 5, 7, 8, 9]


def test_a_late_removal_of_old_segments_leaves_a_topic_made_again_alone():
    """The thread that removes may be busy with something large for minutes."""
    operator = someone_with(cleanup_policy="delete", retention_ms="2000")
    disk = operator.hand.disk
    write_twice(operator)
    disk.defers_removals = True
    pass_time(operator, 20_000)
    operator.delete()
    operator.hand.settle()
    operator.create(ORDERS)
    for number in range(3):
        operator.produce(keyed((b"k", b"%d" % number)))

    assert disk.complete_removals() > 10
    operator.hand.crash()
    operator.client = operator.hand.connect()

    assert kept(operator) == [0, 1, 2]


def test_a_clock_that_is_wrong_for_a_minute_takes_no_tombstone():
    operator = someone_with(delete_retention_ms="60000")
    operator.produce(keyed((b"deleted", b"value")))
    operator.produce(keyed((b"deleted", None), time=10))
    write_twice(operator, time=100)
    make_compact(operator)
    before = kept(operator)

    operator.hand.now_wall_ms += 2 * DAY_MS
    write_twice(operator, time=2 * DAY_MS)
    pass_time(operator, 30_000)
    operator.hand.now_wall_ms -= 2 * DAY_MS
    pass_time(operator, 10_000)
    during = kept(operator)
    pass_time(operator, CLOCK_DISTRUST_MS)
    write_twice(operator, time=60 * 60_000)
    make_compact(operator)

    assert before[0] == during[0] == 1
    assert kept(operator)[0] > 1


# --- Topics that delayed records before.


def test_what_waits_for_a_topic_that_becomes_compacted_comes_once_and_is_compacted() -> None:
    operator = Operator(BrokerByHand(SETTINGS))
    operator.create(ORDERS, delay_enable="true", delay_source="timestamp", segment_ms="1")
    due_ms = 60_000
    operator.produce(keyed((None, b"keyless"), (b"k0", b"delayed"), time=due_ms))
    operator.set(TOPIC, ORDERS, delay_enable="false", cleanup_policy="compact")
    write_twice(operator, 4)

    pass_time(operator, due_ms)
    came = [record.value for record in records_in(operator.fetch(4))]
    write_twice(operator, 4, time=due_ms + 1_000)
    make_compact(operator)
    make_compact(operator)
    left = kept(operator)
    operator.hand.crash()
    operator = Operator(operator.hand)
    pass_time(operator, 10_000)

    assert came == [b"keyless", b"delayed"]
    # The newest segment is never compacted, so the last key still has two records.
    assert left == [7, 8, 9]
    assert kept(operator) == left
