"""Leader epochs: where each began and ended."""

from __future__ import annotations

from tarry.log.index.epoch_index import EpochIndex, decode_epochs


def epochs(*entries: tuple[int, int]) -> EpochIndex:
    index = EpochIndex()
    for epoch, start_offset in entries:
        index.assign(epoch, start_offset)
    return index


def entries_of(index: EpochIndex) -> list[tuple[int, int]]:
    return list(zip(index.epochs, index.start_offsets, strict=True))


def test_an_epoch_ends_where_the_next_one_begins():
    index = epochs((1, 0), (3, 100), (4, 150))

    assert index.end_offset_for(1, 200) == (1, 100)
    assert index.end_offset_for(3, 200) == (3, 150)


def test_the_latest_epoch_ends_at_the_end_of_the_log():
    assert epochs((1, 0), (3, 100)).end_offset_for(3, 200) == (3, 200)


def test_an_epoch_that_was_skipped_is_answered_by_the_one_before():
    assert epochs((1, 0), (3, 100)).end_offset_for(2, 200) == (1, 100)


def test_an_epoch_before_all_known_ones_ends_where_they_begin():
    assert epochs((5, 40), (6, 60)).end_offset_for(3, 200) == (3, 40)


def test_an_epoch_after_all_known_ones_is_unknown():
    assert epochs((1, 0)).end_offset_for(2, 200) == (-1, -1)
    assert epochs().end_offset_for(0, 0) == (-1, -1)
    assert epochs((1, 0)).end_offset_for(-1, 200) == (-1, -1)


def test_an_earlier_epoch_is_not_assigned_again():
    index = epochs((3, 0), (2, 50), (3, 60))

    assert entries_of(index) == [(3, 0)]


def test_an_epoch_without_a_batch_is_forgotten():
    index = epochs((1, 0), (2, 100), (3, 100))

    assert entries_of(index) == [(1, 0), (3, 100)]


def test_a_cut_at_the_end_takes_the_epochs_that_began_there():
    index = epochs((1, 0), (3, 100), (4, 150))

    index.truncate_end(100)

    assert entries_of(index) == [(1, 0)]
    assert index.latest_epoch == 1


def test_a_cut_at_the_start_moves_the_epoch_it_lies_in():
    index = epochs((1, 0), (3, 100), (4, 150))

    index.truncate_start(120)

    assert entries_of(index) == [(3, 120), (4, 150)]


def test_an_offset_belongs_to_the_epoch_that_began_before_it():
    index = epochs((1, 10), (3, 100))

    assert [index.epoch_of(offset) for offset in (9, 10, 99, 100, 500)] == [-1, 1, 1, 3, 3]


def test_the_file_brings_the_same_epochs_back():
    index = epochs((1, 0), (3, 100), (4, 150))

    decoded = decode_epochs(index.encode())

    assert decoded is not None
    assert entries_of(decoded) == entries_of(index)


def test_a_damaged_file_is_no_index():
    content = bytearray(epochs((1, 0), (3, 100)).encode())
    content[-14] ^= 1

    assert decode_epochs(bytes(content)) is None
    assert decode_epochs(b"") is None
    assert decode_epochs(bytes(content[:10])) is None


def test_a_log_without_epochs_knows_no_end_of_any() -> None:
    assert EpochIndex().end_offset_for(-2, 0) == (-1, -1)
    assert EpochIndex().end_offset_for(0, 0) == (-1, -1)
