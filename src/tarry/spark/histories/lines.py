"""Lines: the leader epochs of a log, each with the offset of its first record.

A leader epoch has one leader, and that one only appends.  So two logs that both have an epoch are
alike up to where the shorter of the two ends it, and a short line beside a noted offset is enough
to find where another log of the partition parts from the one that was read.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

# Epochs with their first offsets, both growing.
Line = tuple[tuple[int, int], ...]

# Epochs that are noted beside an offset.  The newest one tells whether the log was cut.  Where it
# was cut takes those that began behind the cut, and only if two elections were unclean.
LINE_EPOCHS_MAX: Final = 4


class NotedPlace(NamedTuple):
    """Offset up to which a log was read, and the line of the log there; empty: not known.

    `topic_id` tells the topic from another one of its name; "": it has none.
    """

    offset: int
    line: Line = ()
    topic_id: str = ""


class LogEnd(NamedTuple):
    """End of a log, and the epoch of its leader; -1: the broker does not tell it."""

    offset: int
    leader_epoch: int


def line_before(line: Line, offset: int) -> Line:
    """Return the part of a line that is noted beside an offset: of the records before it."""
    return tuple(one for one in line if one[1] < offset)[-LINE_EPOCHS_MAX:]


def line_of(kept: Any) -> Line:
    """Read a line from JSON; empty if it is none."""
    if not isinstance(kept, list | tuple):
        return ()
    line: list[tuple[int, int]] = []
    for one in kept:
        if not isinstance(one, list | tuple) or len(one) != 2:
            return ()
        epoch, first = one
        if type(epoch) is not int or type(first) is not int or min(epoch, first) < 0:
            return ()
        if line and not (line[-1][0] < epoch and line[-1][1] < first):
            return ()
        line.append((epoch, first))
    return tuple(line)
