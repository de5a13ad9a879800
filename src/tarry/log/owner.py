"""The owner of a log: the object that learns when the tail is written and when it is durable.

The broker drives every log the same way, whatever object owns it: appends gather in the tail
during a turn, one gathered write per turn, one flush round at a time.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from tarry.log.log import Log


@mypyc_attr(allow_interpreted_subclasses=True)
class LogOwner:
    """Owner of a log, with the reactions to its life.

    `is_touched`: its tail waits for the write.  `is_closed`: the log is given up (its topic was
    deleted), and nothing more is written.
    """

    def __init__(self, name: str, log: Log) -> None:
        self.name = name
        self.log = log
        # open: the turn's write has the log in its list
        self.is_touched = False
        self.is_closed = False
        # True if written bytes join the next flush round; False if the page cache decides when.
        # open: hosting knows the flush policy
        self.is_flushed_at_once = True

    def on_written(self) -> bool:
        """React to a written tail: bytes below `log.written_end_offset`, not durable yet.

        Return True if the operations that wait for this log should look again.
        """
        return False

    def on_write_failed(self) -> None:
        """React to a dropped tail: the log is as it was after the last write."""

    def on_flushed(self, offset: int) -> bool:
        """React to a flush below `offset`; return True if waiting operations should look again."""
        return False
