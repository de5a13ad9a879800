"""ArrowConsumer: records as columns of pyarrow, shared with a group or of assigned partitions.

with ArrowConsumer("orders", group_id="lake") as consumer:
    for batch in consumer.batches(columns=["offset", "timestamp", "value"]):
        write(batch)
        consumer.commit(batch)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from tarry.base.ids import TopicPartition
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.arrow.tables import Choice, check_rows_max, positions_behind
from tarry.client.core.consumer.handed_out import ConsumerRecord
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.face.iteration import ITERATION_SECONDS
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.settings import SettingValue
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.listener import Listener

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX: Final = 65_536


class ArrowConsumer(Consumer):
    """A `Consumer` whose batches are pyarrow's; all else is as it is there."""

    def __init__(
        self,
        *what: str | re.Pattern[str] | Mapping[str, SettingValue] | None,
        listener: Listener | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None:
        load_pyarrow()
        super().__init__(*what, listener=listener, **arguments)

    def batches(  # type: ignore[override]  # rows instead of records, and another name for it
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
            taker = choice.taker(rows_max)
            begin = partial(self._core.begin_columns, taker)
            with self._exclusive:
                runs = self._driver.perform(begin, ITERATION_SECONDS, 0, self._call_back)
                if runs:
                    # The next fetch leaves before the columns are built.
                    self._driver.nudge()
            if runs:
                yield choice.batch(taker)
            elif self._core.was_woken:
                return

    def commit(
        self,
        what: pa.RecordBatch
        | ConsumerRecord
        | RecordGroup
        | Mapping[TopicPartition, int]
        | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit behind the rows of a batch, or what `Consumer.commit` takes."""
        if isinstance(what, load_pyarrow().RecordBatch):
            what = positions_behind(what)
        super().commit(what, timeout)
