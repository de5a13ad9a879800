"""What a partition knows of its producers: duplicates, order, epochs, rollback, snapshots."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.base.limits import PRODUCER_IDS_PER_PARTITION_MAX
from tarry.partition.awaited_batches import GIVEN_UP_MS
from tarry.partition.producers import ProducerStates
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder

SEQUENCE_MAX = 2**31 - 1


def batch(sequence: int, count: int = 1, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(1000, None, b"v")
    data = builder.build(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return BatchHeader(data, 0)


def states_with(*headers: BatchHeader) -> ProducerStates:
    """States after these batches were appended one behind the other from offset 100 on."""
    states = ProducerStates(1000)
    offset = 100
    for header in headers:
        assert states.check(header).error_code == errors.NONE
        states.update(header, offset, 0)
        offset += header.record_count
    states.settle()
    return states


def error_of(states: ProducerStates, header: BatchHeader) -> int:
    return states.check(header).error_code


@pytest.mark.parametrize("sequence", [0, 5, SEQUENCE_MAX])
def test_a_producer_that_is_not_known_may_begin_anywhere(sequence):
    check = ProducerStates(1000).check(batch(sequence, epoch=3))

    assert check.error_code == errors.NONE
    assert not check.is_duplicate


def test_each_batch_follows_the_last_one():
    states = states_with(batch(0, 3), batch(3, 2))

    assert error_of(states, batch(5)) == errors.NONE
    assert error_of(states, batch(6)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(4)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_each_of_the_last_five_batches_is_known_again_with_its_offsets():
    states = states_with(*[batch(2 * index, 2) for index in range(6)])

    checks = [states.check(batch(2 * index, 2)) for index in range(6)]

    assert checks[0].error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [one.is_duplicate for one in checks[1:]] == [True] * 5
    assert [(one.base_offset, one.last_offset) for one in checks[1:]] == [
        (102, 103),
        (104, 105),
        (106, 107),
        (108, 109),
        (110, 111),
    ]
    assert checks[1].append_time_ms == 1000


def test_a_batch_that_covers_only_part_of_a_known_one_is_no_duplicate():
    states = states_with(batch(0, 4))

    assert error_of(states, batch(0, 3)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(2, 2)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_of_the_same_turn_is_known_before_it_is_written():
    states = ProducerStates(1000)
    states.update(batch(0), 100, 0)

    assert states.check(batch(0)).is_duplicate
    assert error_of(states, batch(1)) == errors.NONE


def test_after_the_largest_sequence_comes_zero():
    states = states_with(batch(SEQUENCE_MAX))

    assert error_of(states, batch(0)) == errors.NONE
    assert error_of(states, batch(1)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_across_the_largest_sequence_is_followed_and_known_again():
    states = states_with(batch(SEQUENCE_MAX - 1, 4))

    assert error_of(states, batch(2)) == errors.NONE
    assert states.check(batch(SEQUENCE_MAX - 1, 4)).is_duplicate


def test_an_older_epoch_is_fenced_even_if_its_batch_was_known():
    states = states_with(batch(0), batch(0, epoch=1))

    assert error_of(states, batch(0, epoch=0)) == errors.INVALID_PRODUCER_EPOCH
    assert error_of(states, batch(1, epoch=0)) == errors.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_at_zero():
    states = states_with(batch(0), batch(1))

    assert error_of(states, batch(2, epoch=1)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(0, epoch=1)) == errors.NONE


def test_sequences_of_the_older_epoch_are_no_duplicates_in_the_new_one():
    states = states_with(batch(0), batch(1), batch(0, epoch=1))

    assert error_of(states, batch(1, epoch=1)) == errors.NONE
    assert not states.check(batch(1, epoch=1)).is_duplicate


def test_producers_do_not_know_of_each_other():
    states = states_with(batch(0), batch(40, producer_id=8))

    assert error_of(states, batch(1)) == errors.NONE
    assert error_of(states, batch(41, producer_id=8)) == errors.NONE
    assert len(states) == 2


def test_batches_without_a_producer_id_leave_nothing_behind():
    builder = BatchBuilder()
    builder.append(0, None, None)
    states = ProducerStates(1000)

    states.update(BatchHeader(builder.build(), 0), 100, 0)

    assert len(states) == 0


def test_an_append_that_was_not_written_is_forgotten():
    states = states_with(batch(0))
    states.update(batch(1), 101, 0)
    states.update(batch(2), 102, 0)

    states.rollback()

    assert states.check(batch(0)).is_duplicate
    assert not states.check(batch(1)).is_duplicate
    assert error_of(states, batch(1)) == errors.NONE
    assert error_of(states, batch(3)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_rollback_brings_back_all_five_batches_and_the_epoch():
    states = states_with(*[batch(index) for index in range(5)])
    for index in range(5):
        states.update(batch(index, epoch=1), 105 + index, 0)

    states.rollback()

    assert [states.check(batch(index)).is_duplicate for index in range(5)] == [True] * 5
    assert error_of(states, batch(5)) == errors.NONE


def test_a_producer_that_was_never_written_begins_again_where_it_began():
    states = ProducerStates(1000)
    states.update(batch(4), 100, 0)

    states.rollback()

    # Batches sent behind the failed one must not overtake it.
    assert len(states) == 0
    assert error_of(states, batch(5)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(4)) == errors.NONE
    assert error_of(states, batch(0, epoch=1)) == errors.NONE


def test_what_was_sent_behind_a_refused_beginning_waits_for_it():
    states = ProducerStates(1000)

    states.refuse(batch(4))
    states.refuse(batch(5))

    assert error_of(states, batch(5)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(4)) == errors.NONE


def test_a_new_epoch_whose_beginning_is_refused_waits_for_it_too():
    states = ProducerStates(1000)
    states.refuse(batch(4))

    states.refuse(batch(0, epoch=1))

    assert error_of(states, batch(1, epoch=1)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(0, epoch=1)) == errors.NONE


def test_an_earlier_batch_may_come_before_the_one_that_could_not_be_written():
    """The earlier one was refused because too few replicas were in sync."""
    states = ProducerStates(1000)
    states.refuse(batch(1))
    early = error_of(states, batch(0))

    states.refuse(batch(0))

    assert early == errors.NONE
    assert error_of(states, batch(0)) == errors.NONE
    assert error_of(states, batch(1)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_late_batch_of_an_older_epoch_is_not_awaited():
    states = ProducerStates(1000)
    states.refuse(batch(0, epoch=1))

    states.refuse(batch(7, epoch=0))

    assert error_of(states, batch(1, epoch=1)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_failed_before_the_first_look_has_its_time_as_well():
    states = ProducerStates(1000)
    states.refuse(batch(4))

    states.expire(1_000_000)
    states.expire(1_001_000)

    assert error_of(states, batch(9)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_of_too_many_producers_those_are_forgotten_that_have_not_tried_for_longest():
    states = ProducerStates(1000)
    for producer_id in range(PRODUCER_IDS_PER_PARTITION_MAX):
        states.refuse(batch(4, producer_id=producer_id))
    states.refuse(batch(4, producer_id=0))

    states.refuse(batch(4, producer_id=PRODUCER_IDS_PER_PARTITION_MAX))

    codes = [error_of(states, batch(9, producer_id=producer_id)) for producer_id in range(3)]
    late = errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert codes == [late, errors.NONE, late]


def test_a_producer_whose_beginning_failed_is_forgotten_if_it_does_not_come_again():
    states = ProducerStates(1000)
    states.update(batch(4), 100, 0)
    states.rollback()

    states.expire(1000)
    states.expire(1000 + GIVEN_UP_MS - 1)
    early = error_of(states, batch(9))
    states.expire(1000 + GIVEN_UP_MS)

    assert early == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(states, batch(9)) == errors.NONE


def test_a_producer_whose_beginning_has_just_failed_is_not_forgotten_at_a_late_look():
    states = ProducerStates(1000)
    states.expire(5)
    states.refuse(batch(4))

    states.expire(5 + 10 * GIVEN_UP_MS)

    assert error_of(states, batch(9)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_producer_whose_beginning_fails_again_and_again_keeps_its_order(is_refused):
    """A look for expired producers falls between two tries: what it sent behind must wait still."""
    states = ProducerStates(1000)
    for _ in range(5):
        if is_refused:
            states.refuse(batch(4))
        else:
            states.update(batch(4), 100, 0)
            states.rollback()
        states.expire(0)

        assert error_of(states, batch(5)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert error_of(states, batch(4)) == errors.NONE


def test_what_was_written_before_the_write_failed_stays():
    states = ProducerStates(1000)
    states.update(batch(0), 100, 0)
    states.update(batch(1), 101, 0)
    states.update(batch(0, producer_id=8), 102, 0)

    states.rollback(101)

    assert states.check(batch(0)).is_duplicate
    assert error_of(states, batch(2)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(states) == 1


def test_a_rollback_after_a_settle_takes_nothing_back():
    states = states_with(batch(0))

    states.rollback()

    assert states.check(batch(0)).is_duplicate


def test_a_producer_expires_when_it_was_not_active_for_so_long():
    states = ProducerStates(1000)
    states.update(batch(0), 100, 5000)
    states.update(batch(0, producer_id=8), 101, 5001)
    states.settle()

    expired = states.expire(6000)

    assert expired == 1
    assert error_of(states, batch(77)) == errors.NONE
    assert error_of(states, batch(77, producer_id=8)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_append_that_is_not_written_yet_does_not_expire():
    states = ProducerStates(1000)
    states.update(batch(0), 100, 0)

    assert states.expire(10_000) == 0
    states.settle()
    assert states.expire(10_000) == 1


def test_a_recovered_producer_expires_counted_from_the_first_look_at_it():
    states = ProducerStates(1000)
    states.recover(batch(0))

    assert states.expire(500_000) == 0
    assert states.expire(500_999) == 0
    assert states.expire(501_000) == 1


def test_recovery_keeps_five_batches_of_the_newest_epoch():
    states = ProducerStates(1000)
    for index in range(9):
        states.recover(batch(index))

    assert states.check(batch(4)).is_duplicate
    assert error_of(states, batch(3)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_ids_beyond_the_limit_push_out_those_not_active_for_longest():
    states = ProducerStates(10**9)
    header = batch(0)
    for producer_id in range(PRODUCER_IDS_PER_PARTITION_MAX + 1):
        header.producer_id = producer_id
        states.update(header, producer_id, 1000 + producer_id)
        states.settle()

    assert len(states) == PRODUCER_IDS_PER_PARTITION_MAX + 1 - PRODUCER_IDS_PER_PARTITION_MAX // 8
    header.producer_id = 0
    assert not states.check(header).is_duplicate
    header.producer_id = PRODUCER_IDS_PER_PARTITION_MAX
    assert states.check(header).is_duplicate


def test_a_snapshot_brings_all_five_batches_back():
    states = states_with(
        *[batch(2 * index, 2) for index in range(6)],
        batch(SEQUENCE_MAX, 2, producer_id=8, epoch=4),
    )
    restored = ProducerStates(1000)

    assert restored.load_snapshot(states.encode_snapshot())

    assert [restored.check(batch(2 * index, 2)).is_duplicate for index in range(6)] == [
        False,
        *[True] * 5,
    ]
    again = restored.check(batch(SEQUENCE_MAX, 2, producer_id=8, epoch=4))
    assert (again.base_offset, again.last_offset, again.append_time_ms) == (112, 113, 1000)
    assert restored.encode_snapshot() == states.encode_snapshot()


def test_a_snapshot_of_an_earlier_end_knows_nothing_of_what_came_later():
    states = states_with(batch(0), batch(1), batch(0, producer_id=8))
    restored = ProducerStates(1000)

    restored.load_snapshot(states.encode_snapshot(101))

    assert len(restored) == 1
    assert restored.check(batch(0)).is_duplicate
    assert not restored.check(batch(1)).is_duplicate


def test_an_empty_snapshot_is_one():
    states = states_with(batch(0))

    assert states.load_snapshot(ProducerStates(1).encode_snapshot())
    assert len(states) == 0


def test_no_damaged_snapshot_is_loaded():
    good = states_with(batch(0), batch(1)).encode_snapshot()
    damaged = [good[:size] for size in range(len(good))]
    damaged.append(good + b"\0")
    for position in range(len(good)):
        flipped = bytearray(good)
        flipped[position] ^= 0x10
        damaged.append(bytes(flipped))

    for data in damaged:
        states = states_with(batch(0))
        assert not states.load_snapshot(data)
        assert len(states) == 0


def test_reset_forgets_everything():
    states = states_with(batch(0))
    states.update(batch(1), 101, 0)

    states.reset()
    states.settle()
    states.rollback()

    assert len(states) == 0


def at(header: BatchHeader, offset: int) -> BatchHeader:
    header.base_offset = offset
    return header


def test_what_the_leader_accepted_is_followed_whatever_its_sequence():
    states = ProducerStates(1000)

    for offset, header in ((5, batch(0)), (9, batch(40)), (12, batch(3, epoch=2)), (13, batch(1))):
        states.follow(at(header, offset), 0)
    states.follow(at(batch(-1, producer_id=-1), 14), 0)
    states.settle()

    assert states.active() == [(7, 0, 1, 1000)]
    assert states.check(batch(1)).base_offset == 13


def test_a_follower_knows_the_same_producers_as_its_leader():
    headers = [batch(2 * number, 2) for number in range(7)]
    leader = states_with(*headers)
    follower = ProducerStates(1000)

    for number, header in enumerate(headers):
        follower.follow(at(header, 100 + 2 * number), 0)
    follower.settle()

    assert follower.encode_snapshot() == leader.encode_snapshot()


def test_nobody_waits_for_a_copy_that_could_not_be_written():
    states = ProducerStates(1000)
    states.follow(at(batch(4), 10), 0)

    states.rollback(10)

    assert len(states) == 0
    assert error_of(states, batch(9)) == errors.NONE


@pytest.mark.parametrize(("end_offset", "is_right"), [(99, False), (104, False), (105, True)])
def test_a_cut_is_followed_at_once_if_nobody_wrote_behind_it(end_offset, is_right):
    states = states_with(batch(0, 3), batch(3, 2))

    assert states.truncate(end_offset) == is_right
    assert len(states) == 1


# -- one writer with many ids


def flood(states: ProducerStates, writer: int, ids: int, *, batches: int = 1) -> None:
    """So many new ids, each with so many batches, come through one connection."""
    header = batch(0)
    for number in range(ids):
        header.producer_id = 1_000_000 + number
        for sequence in range(batches):
            header.base_sequence = sequence
            states.update(header, 1_000 + number, 1_000 + number, writer)
        states.settle()


@pytest.mark.parametrize("batches", [1, 2])
def test_a_writer_of_many_ids_pushes_out_its_own(batches: int) -> None:
    states = ProducerStates(10**9)
    states.update(batch(0), 0, 0, 1)
    states.settle()

    flood(states, 2, 3 * PRODUCER_IDS_PER_PARTITION_MAX, batches=batches)

    assert states.check(batch(0)).is_duplicate
    assert error_of(states, batch(5)) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(states) <= PRODUCER_IDS_PER_PARTITION_MAX


def test_an_honest_producer_is_known_after_a_start_between_its_batches() -> None:
    states = ProducerStates(10**9)
    states.update(batch(0), 0, 0, 1)
    states.update(batch(1), 1, 0, 1)
    states.settle()
    flood(states, 2, PRODUCER_IDS_PER_PARTITION_MAX - 10)
    restored = ProducerStates(10**9)
    restored.load_snapshot(states.encode_snapshot())

    flood(restored, 3, 2 * PRODUCER_IDS_PER_PARTITION_MAX)

    assert restored.check(batch(1)).is_duplicate


def test_a_follower_forgets_those_that_wrote_once_first() -> None:
    follower = ProducerStates(10**9)
    for sequence in range(2):
        header = batch(sequence)
        header.base_offset = sequence
        follower.follow(header, 0)
    follower.settle()
    header = batch(0)
    for number in range(3 * PRODUCER_IDS_PER_PARTITION_MAX):
        header.producer_id = 1_000_000 + number
        header.base_offset = 10 + number
        follower.follow(header, 1_000 + number)
        follower.settle()

    assert follower.check(batch(1)).is_duplicate


def test_connections_with_as_many_ids_lose_as_many() -> None:
    states = ProducerStates(10**9)
    header = batch(0)
    for number in range(PRODUCER_IDS_PER_PARTITION_MAX + 1):
        header.producer_id = number
        states.update(header, number, number, 1 + number % 4)
        states.settle()

    left = [row[0] % 4 for row in states.active()]

    assert {left.count(writer) for writer in range(4)} <= {875, 876}
