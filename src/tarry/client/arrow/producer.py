"""ArrowProducer: tables of pyarrow become records, without an object for each.

    with ArrowProducer(bootstrap_servers="localhost:9092") as producer:
        receipt = producer.send("orders", table)
        print(receipt.result(timeout=60).row_count)

The columns are `value` and, if they are there, `key`, `headers`, `partition` and `timestamp`, and
for records that are due later `deliver_at`, `deliver_after` and `schedule_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from tarry.client.arrow.due_rows import DelayedTopic
from tarry.client.arrow.installed import load_pyarrow
from tarry.client.arrow.outgoing_rows import OutgoingRows
from tarry.client.arrow.receipts import TableReceipt
from tarry.client.arrow.table_parts import DueTable
from tarry.client.arrow.tables import check_no_codecs
from tarry.client.core.outgoing import check_topic
from tarry.client.core.producer.partitioner import ANY_PARTITION
from tarry.client.core.producer.row_intake import APART, RowIntake, SentRows
from tarry.client.errors import InvalidSetting, RecordTooLarge
from tarry.client.face.clock import monotonic_ms, wall_ms
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerValue
from tarry.client.sync.base_producer import BaseProducer
from tarry.client.sync.interrupts import Interrupts
from tarry.client.sync.record_path import delay_source_of
from tarry.records.from_columns import HEAD_BYTES_MAX

if TYPE_CHECKING:
    import pyarrow as pa

# Number of batches that are filled before a turn sends them.
RUNS_MAX: Final = 16


class ArrowProducer(BaseProducer):
    """Producer of tables, idempotent by default; its other calls and its settings are those of
    `Producer`."""

    def __init__(
        self,
        settings: Mapping[str, ProducerValue] | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None:
        load_pyarrow()
        check_no_codecs("ArrowProducer", arguments)
        if "on_delivery" in arguments:
            raise TypeError(
                "ArrowProducer calls no function for each record (on_delivery=...): ask the "
                "receipt that send returns, which is one for the whole table"
            )
        super().__init__(settings, **arguments)
        if self.settings.partition_function is not None:
            self.abort()
            raise InvalidSetting(
                "ArrowProducer calls no function for each row: put what it gives into a column "
                "partition"
            )

    def send(self, topic: str, table: pa.Table | pa.RecordBatch) -> TableReceipt:
        """Take the rows of a table, in their order, and return when all are taken; waits for room,
        `max.block.ms` at most without progress.

        The rows of a key go to the partition that Java chooses, or to `partition` where it is not
        null; a row without a time is of now.  Raises TypeError, ValueError or RecordTooLarge before
        a row is taken.  BufferFull and errors of the cluster may come later; what was taken then is
        sent.

        A row with a `deliver_at` (timestamps with a time zone, or milliseconds since 1970), a
        `deliver_after` (durations, texts such as "1h30m", or milliseconds) or a `schedule_id`
        becomes what these arguments of `Producer.send` make of a record; one in which all are null
        is an ordinary record.  Such rows are taken behind the others, into batches of their own; in
        a topic that delays by timestamps each due time has its own.  Raises SchedulingUnsupported
        before a row is taken if there is such a row and the topic does not delay records, or one
        with an id and the topic does not delay by headers.
        """
        check_topic(topic)
        self._driver.check_usable()
        due_table = DueTable(table)
        partition_count = self.partition_count(topic)
        due_table.check_partitions(partition_count)
        delayed = self._delayed(topic, partition_count) if due_table.has_due else None
        now_wall_ms = wall_ms()
        self._check_sizes(due_table.rows, now_wall_ms, "the table")
        parts = due_table.parts(delayed, now_wall_ms)
        for rows, company in parts:
            if company == APART:
                # The headers that say when they are due have made them larger.
                self._check_sizes(rows, now_wall_ms, "those that are due later or have an id")
        sent: list[SentRows] = []
        for rows, company in parts:
            for part in rows.parts(now_wall_ms):
                self._send_part(RowIntake(self._core, topic, part, company), sent)
        return TableReceipt(self._driver, sent)

    def _delayed(self, topic: str, partition_count: int) -> DelayedTopic:
        source = delay_source_of(self._driver, topic, self.settings.block_ms_max)
        return DelayedTopic(topic, source, partition_count, self._is_crc32)

    def send_and_wait(self, topic: str, table: pa.Table | pa.RecordBatch) -> TableReceipt:
        """Send the rows of a table and wait until all are in the log, `delivery.timeout.ms` at
        most; raises the first error why one is not."""
        return self.send(topic, table).result()

    @property
    def _is_crc32(self) -> bool:
        return self.settings.partitioner == "crc32"

    def _check_sizes(self, rows: OutgoingRows, now_wall_ms: int, whose: str) -> None:
        accumulator = self._core.accumulator
        first = 0
        for part in rows.parts(now_wall_ms):
            row, size = part.largest()
            if size > accumulator.record_bytes_max:
                try:
                    accumulator.refuse_size(size)
                except RecordTooLarge as error:
                    raise RecordTooLarge(f"row {first + row} of {whose}: {error}") from None
            first += part.row_count

    def _send_part(self, intake: RowIntake, sent: list[SentRows]) -> None:
        topic, part = intake.topic, intake.rows
        count = self.partition_count(topic)
        for index, places in enumerate(part.split(count, self._is_crc32)):
            partition = index if index < count else ANY_PARTITION
            first = 0
            while first * 4 < len(places):
                taken = self._take_runs(intake, partition, places, first)
                sent += taken
                first += sum(rows.row_count for rows in taken)
                if taken:
                    self._driver.nudge()
                    continue
                row = int.from_bytes(places[first * 4 : first * 4 + 4], "little")
                size = part.body_bytes(row) + HEAD_BYTES_MAX
                begin = partial(self._core.begin_room, topic, size)
                self._driver.perform(begin, None, self.settings.block_ms_max)

    def _take_runs(
        self, intake: RowIntake, partition: int, places: bytes, first: int
    ) -> list[SentRows]:
        """Fill some batches; return an empty list if there is no room."""
        taken: list[SentRows] = []
        now_ms = monotonic_ms()
        # Ctrl-C between appending rows and counting them would leave a batch with a wrong count.
        interrupts = Interrupts()
        interrupts.hold()
        try:
            with self._driver.lock:
                while first * 4 < len(places) and len(taken) < RUNS_MAX:
                    rows = intake.append(partition, places, first, now_ms)
                    if rows is None:
                        break
                    taken.append(rows)
                    first += rows.row_count
                self._driver.background.look()
        finally:
            interrupts.release()
        return taken
