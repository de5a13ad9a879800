"""Sequences of a producer whose batches lie in two logs."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.partition.paired_check import PairedCheck
from tarry.partition.producers import ProducerStates
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder

SEQUENCE_MAX = 2**31 - 1


def batch(sequence: int, count: int = 1, epoch: int = 0) -> BatchHeader:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(1000, None, b"v")
    data = builder.build(producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    return BatchHeader(data, 0)


def states_with(*headers: BatchHeader) -> ProducerStates:
    states = ProducerStates(1000)
    for offset, header in enumerate(headers):
        states.update(header, offset * 10, 0)
        states.settle()
    return states


def states_that_failed(*headers: BatchHeader) -> ProducerStates:
    """States of a log that could not be written with these batches."""
    states = ProducerStates(1000)
    for offset, header in enumerate(headers):
        states.update(header, offset * 10, 0)
    states.rollback(0)
    return states


def verdict(first: ProducerStates, second: ProducerStates, header: BatchHeader) -> str:
    check = PairedCheck(header).run(first, second)
    if check.error_code == errors.NONE:
        return "duplicate" if check.is_duplicate else "new"
    assert check.error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    return "out of order"


def test_what_either_log_knows_is_a_duplicate() -> None:
    first, second = states_with(batch(0), batch(2)), states_with(batch(1))

    assert [verdict(first, second, batch(each)) for each in range(5)] == [
        "duplicate",
        "duplicate",
        "duplicate",
        "new",
        "out of order",
    ]


def test_a_batch_that_one_log_has_lost_is_taken_where_it_fits() -> None:
    first, second = states_with(batch(0, 2)), states_with(batch(3))

    assert verdict(first, second, batch(2)) == "new"
    assert verdict(first, second, batch(1)) == "out of order"


@pytest.mark.parametrize("sequence", [0, 5, SEQUENCE_MAX])
def test_a_producer_that_neither_log_knows_may_begin_anywhere(sequence: int) -> None:
    assert verdict(ProducerStates(1000), ProducerStates(1000), batch(sequence)) == "new"


@pytest.mark.parametrize("base", [0, SEQUENCE_MAX])
def test_after_both_logs_could_not_be_written_the_earlier_batch_comes_first(base: int) -> None:
    earlier, later = batch(base), batch((base + 1) & SEQUENCE_MAX)
    for first, second in (
        (states_that_failed(earlier), states_that_failed(later)),
        (states_that_failed(later), states_that_failed(earlier)),
    ):
        assert verdict(first, second, later) == "out of order"
        assert verdict(first, second, earlier) == "new"

        first.update(earlier, 50, 0)
        first.settle()

        assert verdict(first, second, later) == "new"


def test_what_an_earlier_epoch_left_undone_holds_nothing_up() -> None:
    first, second = states_that_failed(batch(5, epoch=1)), states_that_failed(batch(9, epoch=2))

    assert verdict(first, second, batch(0, epoch=3)) == "new"
    assert verdict(first, second, batch(9, epoch=2)) == "new"
    assert verdict(first, second, batch(10, epoch=2)) == "out of order"
