"""Walks: whether a noted place lies in a log, by a table and by logs that leaders write and cut."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from tarry.spark.histories.lines import (
    LINE_EPOCHS_MAX,
    Line,
    LogEnd,
    NotedPlace,
    line_before,
    line_of,
)
from tarry.spark.histories.walk import QUESTIONS_MAX, FoundLine, Walk


@dataclass
class EpochLog:
    """Log of one replica: the epoch of each record, and the first offset that it still has."""

    epochs: list[int] = field(default_factory=list)
    begin: int = 0
    leader_epoch: int = 0
    # Offsets whose records a compaction has taken.
    gone: set[int] = field(default_factory=set)

    @property
    def end(self) -> int:
        return len(self.epochs)

    @property
    def line(self) -> Line:
        """Epochs as a leader has them: the present one begins where it found the log's end."""
        found: list[tuple[int, int]] = []
        for offset, epoch in enumerate(self.epochs[self.begin :], self.begin):
            if offset not in self.gone and (not found or found[-1][0] != epoch):
                found.append((epoch, offset))
        if not found or found[-1][0] != self.leader_epoch:
            found.append((self.leader_epoch, self.end))
        return tuple(found)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """What Kafka's leader answers to OffsetForLeaderEpoch."""
        line = self.line
        if epoch == line[-1][0]:
            return epoch, self.end
        if epoch > line[-1][0]:
            return -1, -1
        if epoch < line[0][0]:
            return epoch, line[0][1]
        index = max(at for at, one in enumerate(line) if one[0] <= epoch)
        return line[index][0], line[index + 1][1]


def walked(noted: NotedPlace, log: EpochLog) -> tuple[FoundLine, int]:
    """The end of a walk, and how many questions it took."""
    walk = Walk(noted, LogEnd(log.end, log.leader_epoch))
    count = 0
    while walk.question is not None:
        count += 1
        walk.take(*log.epoch_end(walk.question))
    return walk.found, count


def log_of(*runs: tuple[int, int], begin: int = 0, leads: int | None = None) -> EpochLog:
    """A log of so many records of each epoch."""
    epochs = [epoch for epoch, count in runs for _ in range(count)]
    return EpochLog(epochs, begin, max(epochs, default=0) if leads is None else leads)


def place(offset: int, *line: tuple[int, int]) -> NotedPlace:
    return NotedPlace(offset, line)


@pytest.mark.parametrize(
    ("noted", "log", "parting", "questions"),
    [
        # Nothing has happened: nobody is asked.
        (place(50, (0, 0)), log_of((0, 50)), None, 0),
        (place(50, (0, 0)), log_of((0, 80)), None, 0),
        (place(90, (3, 0), (5, 60)), log_of((3, 60), (5, 90)), None, 0),
        # Another leader: it has what was read, and goes on behind it.
        (place(50, (0, 0)), log_of((0, 50), leads=1), None, 1),
        (place(50, (0, 0)), log_of((0, 70), (1, 30)), None, 1),
        (place(50, (0, 0)), log_of((0, 50), (2, 5), (3, 5)), None, 2),
        # It was cut below the place, and is longer than that again.
        (place(50, (0, 0)), log_of((0, 30), (1, 70)), 30, 1),
        (place(50, (0, 0)), log_of((0, 30), (2, 5), (7, 70)), 30, 2),
        (place(90, (3, 0), (5, 60)), log_of((3, 60), (5, 20), (6, 50)), 80, 1),
        # The whole epoch of the place is gone, and nothing else.
        (place(90, (3, 0), (5, 60)), log_of((3, 60), (6, 50)), 60, 1),
        # The new leader had more of the epoch before than was read of it.
        (place(90, (3, 0), (5, 60)), log_of((3, 75), (6, 50)), 60, 1),
        (place(90, (3, 0), (5, 60)), log_of((3, 40), (6, 80)), 40, 1),
        # An epoch that was never read lies between.
        (place(90, (3, 0), (5, 60)), log_of((3, 40), (4, 30), (6, 80)), 40, 2),
        # Nothing is left that was read.
        (place(90, (3, 0), (5, 60)), log_of((6, 200)), 0, 1),
        (place(90, (3, 40), (5, 60)), log_of((2, 20), (6, 200)), 20, 1),
        (place(90, (3, 40), (5, 60)), log_of((2, 70), (6, 200)), 40, 1),
        # Records before the place are not there any more, so nobody can tell.
        (place(50, (0, 0)), log_of((1, 0), (2, 100), begin=60), None, 2),
        # The log begins behind the cut.
        (place(50, (0, 0)), log_of((0, 20), (2, 100), begin=40), 40, 2),
        # The cluster was brought back from an older state: its leader has not come so far.
        (place(50, (0, 0), (4, 20)), log_of((0, 80)), 20, 0),
        (place(50, (4, 20)), log_of((0, 10), (1, 80)), 20, 0),
        # A place without a line cannot be compared; it gets one.
        (place(50), log_of((0, 30), (1, 70)), None, 1),
    ],
)
def test_where_a_log_parts_from_what_was_read(
    noted: NotedPlace, log: EpochLog, parting: int | None, questions: int
) -> None:
    found, count = walked(noted, log)

    assert (found.parting, count) == (parting, questions)


def test_a_log_without_the_epoch_of_the_place_is_doubtful_where_it_goes_on_past_it() -> None:
    noted = place(90, (3, 0), (5, 60))

    assert walked(noted, log_of((3, 100), (7, 50)))[0] == FoundLine(
        ((3, 0), (7, 100)), 60, if_compacted=((3, 0), (5, 60), (7, 100))
    )
    assert walked(noted, log_of((3, 85), (7, 50)))[0].if_compacted is None
    assert walked(noted, log_of((3, 60), (5, 20), (7, 50)))[0].if_compacted is None
    # A leader that has not come so far never had that epoch.
    assert walked(noted, log_of((3, 100)))[0] == FoundLine(((3, 0),), 60)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 2)), min_size=1, max_size=20),
    st.sets(st.integers(0, 60)),
    st.data(),
)
def test_a_compaction_parts_no_log_from_itself(
    terms: list[tuple[int, int]], gone: set[int], data: st.DataObject
) -> None:
    """Whatever epochs a copy has lost with their records, as it was built from what was left."""
    log = EpochLog()
    for count, step in terms:
        log.leader_epoch += step
        log.epochs += [log.leader_epoch] * count
    noted_log = EpochLog(log.epochs[: data.draw(st.integers(0, log.end))])
    noted_log.leader_epoch = max(noted_log.epochs, default=0)
    noted = NotedPlace(noted_log.end, line_before(noted_log.line, noted_log.end))
    log.gone = gone

    found, _ = walked(noted, log)

    assert found.parting is None or found.if_compacted is not None


@pytest.mark.parametrize("answer", [(-1, -1), (9, 50), (0, -1), (-1, 5)])
def test_a_broker_that_cannot_tell_finds_no_parting(answer: tuple[int, int]) -> None:
    walk = Walk(place(50, (0, 0)), LogEnd(80, 3))

    walk.take(*answer)

    assert (walk.question, walk.found) == (None, FoundLine(()))
    untold = Walk(place(50, (0, 0)), LogEnd(80, -1))
    assert (untold.question, untold.found) == (None, FoundLine(()))


def test_a_place_that_is_many_leaders_back_takes_a_bounded_number_of_questions() -> None:
    later = [(epoch, 2) for epoch in range(1, 60)]
    noted = place(50, (0, 0))

    assert walked(noted, log_of((0, 50), *later))[0].parting is None
    assert walked(noted, log_of((0, 40), *later)) == (
        FoundLine(log_of((0, 40), *later).line[-QUESTIONS_MAX:], 40),
        QUESTIONS_MAX + 1,
    )
    found, count = walked(place(0), log_of((0, 50), *later))
    assert count == QUESTIONS_MAX
    assert line_before(found.line, 100) == ()
    assert line_before(found.line, 168)[-1] == (59, 166)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """What happens to a log: records, leaders, cuts by unclean leaders, reads."""
    what = st.tuples(
        st.sampled_from(["write", "write", "lead", "cut", "copy", "elect", "read", "read"]),
        st.integers(1, 6),
    )
    return draw(st.lists(what, max_size=30))


@settings(max_examples=400)
@given(stories())
def test_each_record_of_the_log_is_read_and_none_twice(story: list[tuple[str, int]]) -> None:
    """A reader that goes by offset and line has, at last, read exactly what the log holds, though
    the log was cut and written anew at any time, and copies that lagged behind were elected."""
    log = EpochLog()
    copies: list[tuple[list[int], list[int]]] = []
    noted = NotedPlace(0)
    # Records are told apart by the count of writes before them.
    values: list[int] = []
    written = 0
    read: list[int] = []
    for what, size in [*story, ("read", 0)]:
        if what == "write":
            for _ in range(size):
                written += 1
                values.append(written)
                log.epochs.append(log.leader_epoch)
        elif what == "lead":
            log.leader_epoch += size
        elif what == "cut":
            # Whoever leads after a cut leads in a newer epoch.
            log.leader_epoch += 1
            del log.epochs[max(0, log.end - size) :]
            del values[log.end :]
        elif what == "copy":
            copies.append((list(log.epochs), list(values)))
        elif what == "elect":
            if copies:
                log.leader_epoch += 1
                epochs, values = copies[-1 - size % len(copies)]
                log.epochs, values = list(epochs), list(values)
        else:
            found, _ = walked(noted, log)
            if found.parting is not None:
                assert found.parting < noted.offset
                assert read[: found.parting] == values[: found.parting]
                is_there = found.parting < log.end
                assert not is_there or read[found.parting] != values[found.parting]
                del read[found.parting :]
                noted = NotedPlace(found.parting, line_before(found.line, found.parting))
                found, _ = walked(noted, log)
            assert found.parting is None
            read += values[noted.offset :]
            line = line_before(found.line, log.end) or noted.line
            assert line == line_before(log.line, log.end) or len(line) == LINE_EPOCHS_MAX
            noted = NotedPlace(log.end, line)
    assert read == values


@pytest.mark.parametrize(
    ("kept", "line"),
    [
        ([[0, 0], [3, 25]], ((0, 0), (3, 25))),
        ([], ()),
        (None, ()),
        ("3", ()),
        ([[0]], ()),
        ([[0, -1]], ()),
        ([["0", 1]], ()),
        ([[3, 25], [0, 30]], ()),
        ([[0, 30], [3, 25]], ()),
    ],
)
def test_what_is_no_line_is_none(kept: object, line: Line) -> None:
    assert line_of(kept) == line
