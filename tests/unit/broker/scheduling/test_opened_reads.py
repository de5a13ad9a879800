"""Reads of opened batches: how often one is read again, and how much a turn reads at most."""

from __future__ import annotations

import pytest
from tests.support.broker.counting_disk import COMPANION_FILE, CountingDisk
from tests.unit.broker.scheduling.test_headers import Scheduler, after

from tarry.broker.scheduling.scheduling import RELEASED_BYTES_PER_TURN_MAX
from tarry.simulation.by_hand import BrokerByHand

# Of a batch: where it ends, and all of it.
READS = 2
# Of one that is so small that the first read has all of it.
READS_OF_SMALL = 1


def begin(**topic: str) -> tuple[Scheduler, CountingDisk]:
    hand = BrokerByHand()
    disk = CountingDisk()
    hand.disk = disk
    hand.start()
    return Scheduler(hand, **topic), disk


def test_batches_whose_records_are_due_in_turn_are_read_once():
    user, disk = begin()
    for first in (0, 1):
        user.schedule(*[(b"%d" % n, after(100 + n)) for n in range(first, 120, 2)])
    disk.reads = 0

    user.pass_time(1_000)

    assert user.values() == [b"%d" % n for n in range(120)]
    assert disk.reads == 2 * READS_OF_SMALL


def test_a_batch_whose_records_come_turn_by_turn_is_read_once():
    user, disk = begin()
    user.schedule(*[(b"%d" % n, after(200 - n)) for n in range(100)])
    disk.reads = 0

    user.pass_time(100)
    for _ in range(100):
        user.pass_time(1)

    assert user.values() == [b"%d" % n for n in reversed(range(100))]
    assert disk.reads == READS


def test_a_damaged_batch_is_read_and_told_once(caplog: pytest.LogCaptureFixture):
    user, disk = begin()
    user.schedule(*[(b"%d" % n, after(100 + n)) for n in range(100)])
    user.schedule((b"sound", after(300)))
    disk.flip_bit(COMPANION_FILE, disk.content(COMPANION_FILE).index(b"x-deliver-after"))
    disk.reads = 0

    user.pass_time(200)
    reads = disk.reads
    user.pass_time(100)

    assert reads == READS
    assert user.values() == [b"sound"]
    assert caplog.text.count("a batch that is due is damaged") == 1


def test_a_turn_reads_no_more_than_its_share_of_large_batches():
    user, disk = begin()
    size = RELEASED_BYTES_PER_TURN_MAX * 6 // 10
    for _ in range(10):
        user.schedule((b"near", after(100)), (b"." * size, after(90_000)))

    reads = []
    for ms in (100, 0, 0, 0, 0):
        disk.reads = 0
        user.hand.turn(after_ms=ms)
        reads.append(disk.reads // READS)
    user.hand.settle()

    assert reads == [2, 2, 2, 2, 2]
    assert user.values() == [b"near"] * 10


def test_nothing_of_what_was_read_is_kept_for_long():
    user = Scheduler()
    user.schedule((b"a", after(100)), (b"b", after(10_000)))
    user.pass_time(100)
    for _ in range(10):
        user.pass_time(1_000)

    assert user.values() == [b"a", b"b"]
    assert user.hand.broker.scheduling.opened.size > 0
    user.pass_time(1_000)
    assert user.hand.broker.scheduling.opened.size == 0


# Three batches of 3 MB: more than are kept in memory.
LARGE = b"." * 30_000
COUNT = 100


def park_large_batches_with_due_times_in_turn(user: Scheduler) -> list[bytes]:
    """Park records of which none is due right after another one of its batch."""
    for first in range(3):
        numbers = range(first, 3 * COUNT, 3)
        user.schedule(*[(b"%d" % n + LARGE, after(100 + n)) for n in numbers])
    return [b"%d" % n + LARGE for n in range(3 * COUNT)]


def bytes_read(user: Scheduler) -> int:
    schedule = user.hand.broker.scheduling.get(
        user.hand.broker.topics["orders"].partitions[0].leadership
    )
    assert schedule is not None
    return schedule.reader.bytes_read


def test_of_large_batches_whose_records_are_due_in_turn_each_record_is_read_alone():
    user, _ = begin(max_message_bytes="4000000")
    values = park_large_batches_with_due_times_in_turn(user)

    user.pass_time(1_000)

    assert user.values() == values
    # Each batch once, and each record once more at the most.
    assert bytes_read(user) < 3 * 3 * COUNT * len(LARGE)


def test_a_record_that_was_damaged_after_its_batch_had_to_make_room_does_not_come(
    caplog: pytest.LogCaptureFixture,
):
    user, disk = begin(max_message_bytes="4000000")
    values = park_large_batches_with_due_times_in_turn(user)
    user.pass_time(150)

    disk.flip_bit(COMPANION_FILE, disk.content(COMPANION_FILE).index(values[60]) + 5)
    user.pass_time(1_000)

    # The batch of number 60 has all numbers that are divided by three.
    expected = [value for n, value in enumerate(values) if n < 60 or n % 3]
    assert user.values() == expected
    assert caplog.text.count("a batch that is due is damaged") == 1
