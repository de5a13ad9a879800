"""Walk: questions about the leader epochs of one log, from the newest one down; pure.

    walk = Walk(noted, end)
    while walk.question is not None:
        walk.take(...)          what OffsetForLeaderEpoch answers for the epoch `walk.question`
    walk.found

A leader knows where the largest epoch that is not above a given one ends.  Asked for the one below
its own, it tells in which epoch the records before its own term were written, and where that term
began.  So it goes on downwards until an epoch is met that the noted line has too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.spark.histories.lines import Line, LogEnd, NotedPlace

# Questions about one log on the way down.  If there were more leaders since a place was noted, the
# one after these asks for the epoch of the place itself.
QUESTIONS_MAX: Final = 8

EPOCH_UNKNOWN: Final = -1


class FoundLine(NamedTuple):
    """Line of a log, as far down as was asked, and where the log parts from the noted one.

    `parting` is the first offset whose record is another one; None: the noted place lies in this
    log, or nobody can tell.  `if_compacted` is the line where there is a doubt: the log goes on
    past the place in epochs older than the place's, and has none of that one.  It was written by
    others, or a compaction has taken all records of that epoch; then nothing parts.
    """

    line: Line
    parting: int | None = None
    if_compacted: Line | None = None


class Walk:
    """Walk in one log; `question` is the epoch to ask for, None at the end."""

    def __init__(self, noted: NotedPlace, end: LogEnd) -> None:
        self._noted = noted
        # Epochs whose first offset is known, and the one below them, whose end is.
        self._line: Line = ()
        self._lowest = end.leader_epoch
        self._lowest_end = end.offset
        self._questions = 0
        # Epochs between the two were not asked for.
        self._has_gap = False
        self._if_compacted: Line | None = None
        self._leader_epoch = end.leader_epoch
        self.question: int | None = None
        self.found = FoundLine(())
        if end.leader_epoch > EPOCH_UNKNOWN:
            self._look()

    def take(self, epoch: int, end_offset: int) -> None:
        """Take an answer: the largest epoch that is not above `question`, and its end."""
        asked = self.question
        assert asked is not None
        self.question = None
        if not 0 <= epoch <= asked or end_offset < 0:
            # -1: the leader does not know.  Anything else is no answer.
            self.found = FoundLine(self._line)
            return
        if self._line and epoch == asked and end_offset == self._lowest_end and not self._has_gap:
            # Nothing lies between the two: the log holds nothing that old any more.
            self._reach_begin()
            return
        if not self._has_gap and (not self._line or end_offset < self._line[0][1]):
            self._line = ((self._lowest, end_offset), *self._line)
        self._lowest, self._lowest_end = epoch, end_offset
        self._look()

    def _look(self) -> None:
        """Find out, or ask for the next epoch."""
        if not self._noted.line:
            self._look_for_offset()
            return
        line, lowest = self._noted.line, self._lowest
        self._doubt()
        for index, (epoch, _) in enumerate(line):
            if epoch == lowest:
                self._meet(index)
                return
        if lowest > line[0][0] and self._questions < QUESTIONS_MAX:
            self._ask(lowest - 1)
        elif lowest > line[-1][0] and not self._has_gap:
            self._has_gap = True
            self._ask(line[-1][0])
        else:
            first = next(first for epoch, first in line if epoch > lowest)
            self._part(min(first, self._lowest_end), self._line)

    def _doubt(self) -> None:
        """Note the doubt when the largest epoch that is not above the place's is found."""
        line, offset = self._noted.line, self._noted.offset
        above = self._leader_epoch if not self._line else self._line[0][0]
        is_first_below = self._lowest < line[-1][0] < above
        if is_first_below and self._lowest_end >= offset:
            self._if_compacted = self._line if self._has_gap else (*line, *self._line)

    def _look_for_offset(self) -> None:
        """Go down to the epoch that the record at the noted offset is of."""
        line = self._line
        if self._lowest == 0 and (not line or line[0][1] > 0):
            self._line = line = ((0, 0), *line)
        is_there = self._lowest == 0 or (bool(line) and line[0][1] <= self._noted.offset)
        if is_there or self._questions == QUESTIONS_MAX:
            self.found = FoundLine(line)
        else:
            self._ask(self._lowest - 1)

    def _ask(self, epoch: int) -> None:
        self._questions += 1
        self.question = epoch

    def _meet(self, index: int) -> None:
        """Compare an epoch that both have."""
        line, offset = self._noted.line, self._noted.offset
        both = self._line if self._has_gap else (*line[: index + 1], *self._line)
        is_last = index == len(line) - 1
        if is_last and self._lowest_end >= offset:
            self.found = FoundLine(both)
        else:
            noted_end = offset if is_last else line[index + 1][1]
            self._part(min(noted_end, self._lowest_end), both)

    def _reach_begin(self) -> None:
        begin = self._line[0][1]
        if self._noted.line and begin < self._noted.offset:
            # What was read there was of an older epoch.
            self._part(begin, self._line)
        else:
            self.found = FoundLine(self._line)

    def _part(self, parting: int, line: Line) -> None:
        self.found = FoundLine(line, parting, self._if_compacted)
