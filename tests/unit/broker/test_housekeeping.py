"""What the broker does by the clock: retention, forgotten producers, checkpoints, counters."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, fetched, values_in

from tarry.base import errors
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
CHECK_MS = 300_000
EARLIEST = -2


def pass_time(hand: BrokerByHand, ms: int) -> None:
    """In steps that no broker takes for a standstill."""
    for _ in range(ms // 400):
        hand.turn(after_ms=400)
        hand.settle()


def hand_with(settings: dict[str, str] | None = None, **topic: str) -> tuple[BrokerByHand, User]:
    """A broker that looks at retention every 10 s, with `orders`; each batch is a segment."""
    hand = BrokerByHand(
        {"log.retention.check.interval.ms": "10000", "log.roll.ms": "1", **(settings or {})}
    )
    user = User(hand)
    user.create(ORDERS, **topic)
    return hand, user


def fill(user: User, count: int, *, size: int = 100, step_ms: int = 1_000) -> None:
    """Batches whose records are `step_ms` apart, the last one as old as the start."""
    for number in range(count):
        time = START_WALL_MS - (count - 1 - number) * step_ms
        user.produce(a_batch(b"%05d" % number + b"x" * size, times=(time,)))


def segments(hand: BrokerByHand) -> list[str]:
    return [path for path in hand.disk.paths("orders-0") if path.endswith(".log")]


# --- Retention.


def test_segments_go_when_their_newest_record_is_too_old() -> None:
    hand, user = hand_with(retention_ms="65000")
    fill(user, 10, step_ms=10_000)

    # The check after 20 s gives up what was 50 s old then; the next recovery point makes it so.
    pass_time(hand, 28_000)

    assert user.list_offsets(EARLIEST).offset == 5
    assert len(segments(hand)) == 5
    assert user.fetch(4).error_code == errors.OFFSET_OUT_OF_RANGE
    assert len(values_in(user.fetch(5))) == 1


def test_segments_go_when_the_log_is_too_large() -> None:
    hand, user = hand_with(retention_ms="-1", retention_bytes="1000")
    fill(user, 20, size=130)

    pass_time(hand, 21_000)

    kept = user.hand.broker.topics[ORDERS].partitions[0].log.size_bytes
    assert 1_000 <= kept < 1_300
    assert user.list_offsets(EARLIEST).offset == 20 - kept // 205


def test_a_log_that_is_due_as_a_whole_is_emptied_and_keeps_its_end() -> None:
    hand, user = hand_with(retention_ms="60000")
    fill(user, 3)

    pass_time(hand, 90_000)
    crashed_end = user.list_offsets(-1).offset
    hand.crash()
    user = User(hand)

    assert crashed_end == 3
    assert user.list_offsets(EARLIEST).offset == user.list_offsets(-1).offset == 3
    assert user.produce(a_batch(b"next")).base_offset == 3


def test_a_fetch_whose_offset_expires_while_it_waits_ends_with_an_error() -> None:
    hand, user = hand_with(retention_ms="60000")
    fill(user, 3)
    reader = User(hand)
    reader.send_fetch(2, max_wait_ms=120_000, min_bytes=1_000_000)

    pass_time(hand, 100_000)
    early = reader.answers()
    pass_time(hand, 30_000)

    (answer,) = early or reader.answers()
    assert fetched(answer)[0].error_code == errors.OFFSET_OUT_OF_RANGE


def test_nothing_that_is_not_flushed_expires() -> None:
    hand, user = hand_with(retention_ms="1000")
    user.send_produce(a_batch(b"old", times=(START_WALL_MS - DAY_MS,)))

    for _ in range(60):
        hand.turn(after_ms=400)

    assert len(segments(hand)) == 1
    hand.settle()
    assert [type(answer).__name__ for answer in user.answers()] == ["ProduceResponse"]


@pytest.mark.parametrize("jump_ms", [3 * DAY_MS, -3 * DAY_MS])
@pytest.mark.parametrize("begin_ms", [10_000, CHECK_MS - 30_000])
def test_a_clock_that_is_set_wrong_for_a_minute_deletes_nothing(
    caplog: pytest.LogCaptureFixture, begin_ms: int, jump_ms: int
) -> None:
    hand, user = hand_with(
        {"log.retention.check.interval.ms": str(CHECK_MS)}, retention_ms=str(DAY_MS)
    )
    fill(user, 5)
    pass_time(hand, begin_ms)

    hand.now_wall_ms += jump_ms
    pass_time(hand, 60_000)
    hand.now_wall_ms -= jump_ms
    pass_time(hand, 3 * CHECK_MS)

    assert User(hand).list_offsets(EARLIEST).offset == 0
    assert len(segments(hand)) == 5
    jumps = [r.getMessage() for r in caplog.records if "wall clock jumped" in r.getMessage()]
    # Seen only if a check falls into the minute: then as it goes and as it comes back.
    assert len(jumps) == (0 if begin_ms == 10_000 else 2)
    assert all("retention waits until the next check in 300 s" in line for line in jumps)


def test_a_clock_that_stays_set_counts_from_the_check_after_the_next() -> None:
    hand, user = hand_with(retention_ms=str(DAY_MS))
    fill(user, 5)
    hand.now_wall_ms += 3 * DAY_MS

    pass_time(hand, 11_000)
    at_the_jump = user.list_offsets(EARLIEST).offset
    pass_time(hand, 15_000)

    assert at_the_jump == 0
    assert user.list_offsets(EARLIEST).offset == 5


def test_a_process_that_was_stopped_for_hours_does_not_take_that_for_a_jump() -> None:
    hand, user = hand_with(retention_ms=str(DAY_MS))
    fill(user, 5)

    hand.turn(after_ms=2 * DAY_MS)
    pass_time(hand, 25_000)

    assert user.list_offsets(EARLIEST).offset == 5


def test_a_small_step_of_the_clock_is_no_jump(caplog: pytest.LogCaptureFixture) -> None:
    hand, user = hand_with(retention_ms="60000")
    fill(user, 3)
    hand.now_wall_ms += HOUR_MS - 60_000

    pass_time(hand, 25_000)

    assert user.list_offsets(EARLIEST).offset == 3
    assert "jumped" not in caplog.text


# --- Producers.


def test_a_producer_that_is_silent_for_too_long_is_forgotten() -> None:
    hand, user = hand_with(
        {
            "producer.id.expiration.ms": "20000",
            "producer.id.expiration.check.interval.ms": "5000",
        }
    )
    batch = a_batch(b"a", producer_id=7, sequence=0)
    user.produce(batch)
    pass_time(hand, 10_000)

    known = user.produce(batch)
    pass_time(hand, 30_000)
    forgotten = user.produce(batch)

    assert known.base_offset == 0
    assert forgotten.base_offset == 1


def test_a_producer_that_goes_on_is_not_forgotten() -> None:
    hand, user = hand_with(
        {
            "producer.id.expiration.ms": "20000",
            "producer.id.expiration.check.interval.ms": "5000",
        }
    )
    for sequence in range(5):
        answer = user.produce(a_batch(b"a", producer_id=7, sequence=sequence))
        assert answer.error_code == errors.NONE
        pass_time(hand, 10_000)

    assert user.produce(a_batch(b"a", producer_id=7, sequence=4)).base_offset == 4


# --- Checkpoints.


def test_after_a_while_a_crash_finds_a_recovery_point_at_the_end() -> None:
    hand, user = hand_with()
    fill(user, 20)

    pass_time(hand, 70_000)
    hand.crash()
    log = hand.broker.topics[ORDERS].partitions[0].log

    assert log.recovery_report.scanned_bytes == 0
    assert values_in(User(hand).fetch(0)) != []


# --- Counters.


def counters(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith("purgatory ")]


def test_a_purgatorys_counters_are_told_once_a_minute_when_they_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    hand, user = hand_with()
    user.produce(a_batch(b"a"))
    user.send_fetch(1, max_wait_ms=2_000_000_000)
    caplog.clear()

    pass_time(hand, 61_000)
    first = counters(caplog)
    caplog.clear()
    pass_time(hand, 300_000)
    unchanged = counters(caplog)
    User(hand).produce(a_batch(b"b"))
    pass_time(hand, 61_000)
    changed = counters(caplog)

    assert [line.split(":")[0] for line in first] == [
        "purgatory Produce",
        "purgatory Fetch",
        "purgatory Metadata",
    ]
    assert "watched 1, delayed 1, completed 0, expired 0" in first[1]
    assert unchanged == []
    assert [line.split(":")[0] for line in changed] == ["purgatory Produce", "purgatory Fetch"]
    assert "watched 0, delayed 0, completed 1, expired 0" in changed[1]


def test_a_broker_that_nobody_uses_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    hand = BrokerByHand()
    caplog.set_level(logging.INFO)

    pass_time(hand, 200_000)

    assert counters(caplog) == []


def test_an_expired_fetch_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hand, user = hand_with()
    user.send_fetch(0, max_wait_ms=500)

    pass_time(hand, 61_000)

    (answer,) = user.answers()
    assert values_in(fetched(answer)[0]) == []
    # Its watch key is swept with the next check of that key, so it may be watched still.
    assert "delayed 0, completed 1, expired 1" in counters(caplog)[0]


def test_an_index_that_cannot_be_read_when_all_is_due_harms_nobody() -> None:
    hand = BrokerByHand(
        {
            "log.retention.ms": "1000",
            "log.retention.check.interval.ms": "10000",
            "log.index.interval.bytes": "0",
        }
    )
    user = User(hand)
    user.create(ORDERS)
    for number in range(30):
        user.produce(a_batch(b"%04d" % number))
    hand.stop()
    hand.start()
    hand.disk.fail_reads(1, "0.index")

    for _ in range(80):
        hand.turn(after_ms=400)
        hand.settle()

    # The next check deletes what this one could not.
    assert User(hand).fetch(0).error_code == errors.OFFSET_OUT_OF_RANGE
