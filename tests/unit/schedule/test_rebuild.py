"""Rebuild of a schedule: which checkpoint and which releases count, and what cannot be read."""

from __future__ import annotations

import pytest

from tarry.base.errors import CorruptData
from tarry.base.limits import CHECKPOINTS_KEPT_PER_EPOCH, SCHEDULE_FLAWS_KEPT
from tarry.log.index.epoch_index import EpochIndex
from tarry.schedule.notes import (
    ANY_OFFSET,
    EACH_ITS_OWN,
    CancelledNote,
    CheckpointNote,
    ScheduledNote,
    UnreadableNote,
    Watermark,
)
from tarry.schedule.places import RecordPlace
from tarry.schedule.rebuild import Rebuild

# Behind every offset of S.
ALL = 10**9


def epochs(*starts: tuple[int, int]) -> EpochIndex:
    index = EpochIndex()
    for epoch, start_offset in starts:
        index.assign(epoch, start_offset)
    return index


def park(rebuild: Rebuild, s_offset: int, due_ms: int, epoch: int = 0) -> None:
    rebuild.add_note(s_offset - 1, ScheduledNote(due_ms))
    rebuild.add_body(s_offset, epoch, 1, 100)


def checkpoint(c: int, epoch: int, due_ms: int, s_offset: int, *exceptions: int) -> CheckpointNote:
    return CheckpointNote(c, epoch, [Watermark(ANY_OFFSET, due_ms, s_offset)], list(exceptions))


def pending(rebuild: Rebuild, s_high_watermark: int = ALL) -> list[int]:
    state = rebuild.finish(s_high_watermark)
    found: list[int] = []
    while (body := state.take_due(ALL)) is not None:
        found.append(body.s_offset)
    return found


def test_without_a_checkpoint_the_partition_is_read_from_its_start() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    park(rebuild, 4, 5)
    park(rebuild, 6, 7)

    assert rebuild.begin_releases(epochs((0, 0)), 3, 9, 9) == 3
    rebuild.add_release(4, 0, 5, 1)
    assert pending(rebuild) == [6, 2]


def test_the_last_checkpoint_says_what_is_done_and_from_where_to_read() -> None:
    rebuild = Rebuild()
    for s_offset, due_ms in ((2, 10), (4, 20), (6, 30), (8, 40)):
        park(rebuild, s_offset, due_ms)
    rebuild.add_note(9, checkpoint(1, 0, 10, 2))
    rebuild.add_note(10, checkpoint(3, 0, 30, 6, 4))
    # Parked behind the checkpoint, and due below its watermark.
    park(rebuild, 12, 5)

    assert rebuild.begin_releases(epochs((0, 0)), 0, 9, 9) == 3
    assert pending(rebuild) == [12, 4, 8]


def test_a_checkpoint_counts_only_where_the_partition_has_what_it_speaks_of() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    park(rebuild, 4, 20)
    rebuild.add_note(5, checkpoint(1, 0, 10, 2))
    # Of a partition that was cut: it is shorter now, or has another epoch there.
    rebuild.add_note(6, checkpoint(7, 0, 20, 4))
    rebuild.add_note(7, checkpoint(3, 1, 20, 4))

    assert rebuild.begin_releases(epochs((0, 0), (2, 2)), 0, 5, 5) == 1
    assert pending(rebuild) == [4]


def test_a_checkpoint_at_the_start_of_the_partition_counts() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    rebuild.add_note(3, checkpoint(5, 0, 10, 2))

    assert rebuild.begin_releases(epochs((1, 5)), 5, 8, 8) == 5
    assert pending(rebuild) == []


def test_a_checkpoint_counts_whose_c_lies_in_the_gap_before_the_first_batch() -> None:
    """The partition's start lies in a compacted gap, and this replica has copied what is behind."""
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    rebuild.add_note(3, checkpoint(7, 0, 10, 2))

    assert rebuild.begin_releases(epochs((1, 7)), 5, 12, 12) == 7
    assert pending(rebuild) == []


def test_of_each_epoch_the_newest_checkpoints_are_kept() -> None:
    rebuild = Rebuild()
    rebuild.add_note(0, checkpoint(1, 0, 0, 0))
    for number in range(3 * CHECKPOINTS_KEPT_PER_EPOCH):
        rebuild.add_note(1 + number, checkpoint(100 + number, 4, 0, 0))

    # The partition has nothing of the later epoch.
    assert rebuild.begin_releases(epochs((0, 0)), 0, 50, 50) == 1


def test_a_release_of_an_earlier_epoch_was_of_another_body() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10, epoch=3)
    park(rebuild, 4, 20, epoch=3)

    rebuild.begin_releases(epochs((2, 0), (3, 1)), 0, 9, 9)
    rebuild.add_release(2, 2, 0, 1)
    rebuild.add_release(4, 3, 1, 1)
    rebuild.add_release(77, 3, 2, 1)

    assert pending(rebuild) == [2]


def test_what_was_cancelled_is_not_pending() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    park(rebuild, 4, 20)
    rebuild.add_note(5, CancelledNote(2))

    rebuild.begin_releases(epochs(), 0, 0, 0)

    assert pending(rebuild) == [4]


def test_what_is_done_is_known_as_released_only_if_no_cancel_of_it_can_be_lost() -> None:
    rebuild = Rebuild()
    for s_offset, schedule_id in ((2, b"one"), (4, b"two"), (9, b"two")):
        place = RecordPlace(0, 1, s_offset, schedule_id)
        rebuild.add_note(s_offset - 1, ScheduledNote(s_offset, [place]))
        rebuild.add_body(s_offset, 0, 1, 100)
    # Compaction has dropped the batches at 5 to 7: one of them may have cancelled the first two.
    rebuild.add_note(10, checkpoint(1, 0, 9, 9))
    rebuild.begin_releases(epochs((0, 0)), 0, 1, 1)

    state = rebuild.finish(ALL)

    assert [state.released_offset(s_offset) for s_offset in (2, 4, 9)] == [None, None, -1]
    assert state.released.s_offset_of(b"one") is None
    assert state.released.s_offset_of(b"two") == 9


def test_what_lies_before_an_emptied_batch_may_have_been_cancelled() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 2)
    rebuild.add_note(3, ScheduledNote(3))
    rebuild.add_emptied(4)
    rebuild.add_note(6, checkpoint(1, 0, 9, 9))
    rebuild.begin_releases(epochs((0, 0)), 0, 1, 1)

    assert rebuild.finish(ALL).released_offset(2) is None


def test_what_lies_above_the_high_watermark_is_parked() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    park(rebuild, 4, 5)

    rebuild.begin_releases(epochs(), 0, 0, 0)

    assert pending(rebuild, s_high_watermark=4) == [2]


def test_releases_above_the_high_watermark_are_under_way_in_the_next_life() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    park(rebuild, 4, 20)
    rebuild.begin_releases(epochs((0, 0)), 0, 9, 8)
    rebuild.add_release(2, 0, 7, 1)
    rebuild.add_release(4, 0, 8, 1)

    state = rebuild.finish(ALL)
    before = state.checkpoint(8, 0)
    state.commit_released(9)
    after = state.checkpoint(9, 0)

    assert before is not None
    assert after is not None
    assert [(w.due_ms, w.s_offset) for w in before.watermarks] == [(10, 2)]
    assert [(w.due_ms, w.s_offset) for w in after.watermarks] == [(20, 4)]


def test_what_is_under_way_in_the_next_life_has_its_id_until_another_one_has_it() -> None:
    rebuild = Rebuild()
    for s_offset, schedule_id in ((2, b"one"), (4, b"two"), (6, b"two")):
        place = RecordPlace(0, 1, 10, schedule_id)
        rebuild.add_note(s_offset - 1, ScheduledNote(10, [place]))
        rebuild.add_body(s_offset, 0, 1, 100)
    rebuild.begin_releases(epochs((0, 0)), 0, 9, 7)
    rebuild.add_release(2, 0, 7, 1)
    rebuild.add_release(4, 0, 8, 1)

    state = rebuild.finish(ALL)
    before = [state.is_being_released(each) for each in (b"one", b"two", b"three")]
    state.commit_released(9)

    assert before == [True, False, False]
    assert not state.is_being_released(b"one")
    assert state.cancellable(b"two") == 6


def test_a_note_without_its_body_right_behind_it_is_dead() -> None:
    rebuild = Rebuild()
    rebuild.add_note(1, ScheduledNote(10))
    park(rebuild, 3, 20)
    rebuild.add_note(4, ScheduledNote(30))

    rebuild.begin_releases(epochs(), 0, 0, 0)

    assert rebuild.flaws == []
    assert pending(rebuild) == [3]


def test_what_cannot_be_read_is_named_and_not_released() -> None:
    rebuild = Rebuild()
    rebuild.add_body(0, 0, 1, 100)
    rebuild.add_note(1, UnreadableNote("the note at offset 1: it is damaged", is_newer=False))
    rebuild.add_body(2, 0, 1, 100)
    rebuild.add_note(3, ScheduledNote(EACH_ITS_OWN))
    rebuild.add_body(4, 0, 5, 100)
    rebuild.add_note(5, ScheduledNote(10))
    rebuild.add_body(8, 0, 1, 100)

    rebuild.begin_releases(epochs(), 0, 0, 0)

    assert rebuild.flaws == [
        "the batch at offset 0 has no note that says when it is due",
        "the note at offset 1: it is damaged",
        "the batch at offset 2 has no note that says when it is due",
        "the batch at offset 4 cannot be released: no times are noted",
        "the batch at offset 8 has no note that says when it is due",
    ]
    assert pending(rebuild) == []


def test_sentences_about_many_flaws_are_bounded() -> None:
    rebuild = Rebuild()
    for s_offset in range(1_000):
        rebuild.add_body(s_offset, 0, 1, 100)

    assert len(rebuild.flaws) == SCHEDULE_FLAWS_KEPT
    assert rebuild.flaw_count == 1_000


def test_a_batch_without_a_due_time_is_kept_and_stays_open_for_a_later_life() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    rebuild.add_note(3, checkpoint(1, 0, 10, 2))
    rebuild.add_note(4, UnreadableNote("damaged", is_newer=False))
    rebuild.add_body(5, 0, 1, 100)
    rebuild.add_note(6, UnreadableNote("damaged", is_newer=False))
    rebuild.add_body(7, 0, 1, 100)
    rebuild.begin_releases(epochs((0, 0)), 0, 9, 9)
    rebuild.add_release(5, 0, 1, 1)

    state = rebuild.finish(ALL)
    noted = state.checkpoint(2, 0)

    assert state.first_offset() == 7
    assert noted is not None
    assert noted.exceptions == [7]


def test_no_checkpoint_is_written_while_one_may_or_may_not_be_done() -> None:
    rebuild = Rebuild()
    rebuild.add_note(1, UnreadableNote("damaged", is_newer=False))
    rebuild.add_body(2, 0, 1, 100)
    rebuild.add_note(3, checkpoint(1, 0, 10, 2))
    rebuild.begin_releases(epochs((0, 0)), 1, 9, 9)

    state = rebuild.finish(ALL)

    assert state.first_offset() == 2
    assert state.checkpoint(9, 0) is None


def test_what_a_release_says_of_its_records_counts() -> None:
    rebuild = Rebuild()
    park(rebuild, 2, 10)
    park(rebuild, 4, 20)
    rebuild.begin_releases(epochs((0, 0)), 0, 9, 0)

    # S says that each has one record.
    rebuild.add_release(2, 0, 0, 3)
    rebuild.add_release(4, 0, 3, 2)
    state = rebuild.finish(ALL)
    state.commit_released(3)
    noted = state.checkpoint(3, 0)

    assert noted is not None
    assert [(w.due_ms, w.s_offset) for w in noted.watermarks] == [(10, 2)]


@pytest.mark.parametrize("is_s_whole", [True, False])
def test_releases_that_neither_log_tells_any_more_are_asked_for(is_s_whole: bool) -> None:
    rebuild = Rebuild()
    rebuild.add_note(0, checkpoint(0, -1, 0, 0))
    park(rebuild, 2, 10)
    if is_s_whole:
        rebuild.add_note(3, UnreadableNote("it may have been a checkpoint", is_newer=False))

    with pytest.raises(CorruptData, match="begins at offset 4, does not tell any more"):
        rebuild.begin_releases(epochs((0, 0)), 4, 9, 9, is_s_whole=is_s_whole)


def test_a_damaged_note_of_a_body_was_no_checkpoint() -> None:
    rebuild = Rebuild()
    rebuild.add_note(0, checkpoint(0, -1, 0, 0))
    rebuild.add_note(1, UnreadableNote("damaged", is_newer=False))
    rebuild.add_body(2, 0, 1, 100)
    # The note of this one passes for a body.
    rebuild.add_body(3, 0, 1, 100)
    rebuild.add_body(4, 0, 1, 100)
    park(rebuild, 6, 10)

    assert rebuild.begin_releases(epochs((0, 0)), 4, 9, 9) == 4
    assert pending(rebuild) == [6]


def test_the_state_is_filled_and_memory_is_freed_in_steps() -> None:
    rebuild = Rebuild()
    for s_offset in range(2, 14, 2):
        park(rebuild, s_offset, 10)
    for s_offset in (2, 4, 6, 8):
        rebuild.add_note(20 + s_offset, CancelledNote(s_offset))
    rebuild.begin_releases(epochs((0, 0)), 0, 9, 9)
    rebuild.begin_state(ALL)

    states = [rebuild.take_on(2) for _ in range(7)]

    # Three steps take the bodies, one finds none left and frees the first, two free the others.
    assert [state is not None for state in states] == [False] * 5 + [True] * 2
    assert not rebuild.free(1)
    found = states[-1]
    assert found is not None
    assert found.pending.count == 2
