"""ArrowConsumer: records as columns of pyarrow, shared with a group or of assigned partitions.

with ArrowConsumer("orders", group_id="lake") as consumer:
    for batch in consumer.batches(columns=["offset", "timestamp", "value"]):
        write(batch)
        consumer.commit(batch)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from tarry.client.arrow.installed import load_pyarrow
from tarry.client.arrow.tables import Choice, check_no_codecs, check_rows_max, positions_behind
from tarry.client.core.consumer.column_taker import RowRun
from tarry.client.core.group.assignment.assignor import Assignor
from tarry.client.core.group.offsets.commit import CommitCallback
from tarry.client.core.group.offsets.what import CommitWhat
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.sync.base_consumer import BaseConsumer, What
from tarry.client.sync.interrupts import Interrupts
from tarry.client.sync.listener import Listener

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX: Final = 65_536


class ArrowConsumer(BaseConsumer[bytes, bytes]):
    """Consumer whose batches are pyarrow's; its other calls are those of `Consumer`."""

    def __init__(
        self,
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None:
        load_pyarrow()
        check_no_codecs("ArrowConsumer", arguments)
        super().__init__(*what, listener=listener, assignors=assignors, **arguments)

    def batches(
        self,
        max_rows: int = ROWS_MAX,
        columns: Iterable[str] | None = None,
        views: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches of what has come, `max_rows` rows at most, without an end until
        `wakeup`; a batch is finished when the next one is asked for.

        `columns` chooses columns and their order; what is not chosen is not built.  With `views`
        keys and values are `binary_view`s into the fetched bytes, which are kept in memory as long
        as the batch is.
        """
        check_rows_max(max_rows)
        return self._yield_batches(max_rows, Choice(columns, views=views))

    def _yield_batches(self, rows_max: int, choice: Choice) -> Iterator[pa.RecordBatch]:
        while True:
            batch = self._poll_batch(rows_max, choice)
            if batch is not None:
                yield batch
            elif self._core.was_woken:
                return

    def _poll_batch(self, rows_max: int, choice: Choice) -> pa.RecordBatch | None:
        """Return the next rows; None after a wakeup, or if none came in a long time."""
        driver = self._driver
        seconds = self._iteration_seconds()
        taker = choice.taker(rows_max)
        begin = partial(self._core.begin_columns, taker)
        interrupts = Interrupts()
        batch: pa.RecordBatch | None = None
        runs: list[RowRun] = []
        driver.check_usable()
        with self._exclusive:
            try:
                runs = driver.perform(begin, seconds, 0, self._call_back, interrupts=interrupts)
                if runs:
                    # Turn once, so that the next fetch leaves before the columns are built.
                    driver.nudge(interrupts)
                    batch = choice.batch(taker)
            finally:
                # If Ctrl-C or a lack of memory is raised here, the rows are given back.
                if batch is None:
                    self._give_back(runs)
                    runs = []
                interrupts.release_or(partial(self._give_back, runs))
            return batch

    def _give_back(self, runs: list[RowRun]) -> None:
        if runs:
            with self._driver.lock:
                self._core.give_back_rows(runs)

    def commit(
        self, what: pa.RecordBatch | CommitWhat = None, timeout: float | None = None
    ) -> None:
        """Commit behind the rows of a batch, or what `Consumer.commit` takes."""
        super().commit(_committed_by(what), timeout)

    def commit_async(
        self,
        what: pa.RecordBatch | CommitWhat = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit as `commit` does, without waiting; see `Consumer.commit_async`."""
        super().commit_async(_committed_by(what), callback)


def _committed_by(what: pa.RecordBatch | CommitWhat) -> CommitWhat:
    if isinstance(what, load_pyarrow().RecordBatch):
        return positions_behind(what)
    given: CommitWhat = what
    return given
