"""Producer of the product with a user that sends, waits and flushes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import DeliveryTimedOut
from tarry.client.settings import ProducerSettings, SettingValue
from tarry.link.errors import ClientError
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.history import REFUSED, SentBatch, SentRecord
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.product.client_node import ClientNode, User
from tarry.simulation.product.history import ProductHistory
from tarry.simulation.world import World

if TYPE_CHECKING:
    from tarry.client.core.producer.queue import PartitionQueue
    from tarry.records.builder import Headers
    from tarry.simulation.schedule.ledger import ScheduleLedger

_RECORDS_MAX: Final = 4
_VALUE_BYTES_MAX: Final = 120
# Bytes around a value of more than 63 bytes, in a batch with one record without a key.
_BATCH_BYTES_AROUND: Final = 70
_FLUSH_MS_MAX: Final = 60_000


class ProducerNode(ClientNode):
    """Client that sends records of its own to any partition, until the run is quiet."""

    def __init__(
        self,
        world: World,
        context: RunContext,
        name: str,
        settings: dict[str, SettingValue],
        product_history: ProductHistory,
        pause_ms_max: int,
    ) -> None:
        self.context = context
        self._history = product_history
        self.settings = ProducerSettings({**settings, "client.id": name})
        self.is_answered = self.settings.acks != 0
        self._pause_ms_max = pause_ms_max
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._values = 0
        self._under_way: list[tuple[RecordReceipt, SentBatch]] = []
        # Size of each batch in bytes, if it holds one record; 0 if sizes vary.
        self.batch_bytes = 0
        # Times from now until records are due, by their timestamps; empty if they are due now.
        self.delays_ms: tuple[int, ...] = ()
        # Ledger that draws the headers of records; None if records have no headers.
        self.ledger: ScheduleLedger | None = None
        # Number of rounds in which it sends records although the run is quiet.
        self.extra_records = 0
        self.producer_core = ProducerCore(self.settings, world.random, world.agenda.now_ms)
        super().__init__(world, name, self.producer_core)

    @property
    def is_settled(self) -> bool:
        """True when nothing is under way and nothing more is sent."""
        return self.is_gone or (
            self.context.is_quiet and not self._under_way and not self.extra_records
        )

    def queues(self) -> list[PartitionQueue]:
        """Return the queue of each partition, with what is under way to it."""
        return self.producer_core.accumulator.queues()

    def user(self) -> User:
        context = self.context
        random = context.random
        while not self.is_gone:
            if not context.is_quiet or self.extra_records:
                for _ in range(1 + random.randrange(_RECORDS_MAX)):
                    yield from self._send_record()
                self.extra_records = max(0, self.extra_records - 1)
                if self._under_way and random.randrange(8) == 0:
                    receipt = self._under_way[-1][0]
                    yield self.producer_core.begin_wait(receipt, 1_000, self.clock.now_ms)
                yield Delay(random.randrange(self._pause_ms_max))
            if context.is_quiet or random.randrange(20) == 0:
                yield self.producer_core.begin_flush(_FLUSH_MS_MAX, self.clock.now_ms)
            if context.is_quiet:
                yield Delay(50)
            self._take_receipts()

    def _send_record(self) -> User:
        """Send one record; its outcome is noted later."""
        context = self.context
        random = context.random
        topic = context.topics[random.randrange(len(context.topics))]
        place = (topic.topic_id, random.randrange(topic.partitions))
        self._values += 1
        value = b"%s-%d-" % (self.name.encode(), self._values)
        if self.batch_bytes:
            value = value.ljust(self.batch_bytes - _BATCH_BYTES_AROUND, b".")
        else:
            value += b"." * random.randrange(_VALUE_BYTES_MAX)
        timestamp = self.clock.now_wall_ms
        if self.delays_ms:
            timestamp += self.delays_ms[random.randrange(len(self.delays_ms))]
        headers: Headers | None = None
        if self.ledger is not None:
            clock = self.clock
            wish = self.ledger.draw_wish(random, place, value, clock.now_ms, clock.now_wall_ms)
            headers = wish.headers(random.randrange(2))
        sent = SentRecord(value, timestamp)
        number = self._numbers.get(place, 0)
        self._numbers[place] = number + 1
        batch = SentBatch(self.name, place, number, [sent])
        batch.is_idempotent = self.settings.is_idempotent
        batch.is_ordered = batch.is_idempotent
        context.history.batches.append(batch)
        record = (topic.name, place[1], sent.timestamp, None, sent.value, headers)
        core = self.producer_core
        try:
            receipt = core.append(*record, now_ms=self.clock.now_ms)
        except ClientError as error:
            self._refuse(batch, error)
            return
        if receipt is None:
            outcome = yield core.begin_send(record, self.settings.block_ms_max, self.clock.now_ms)
            if isinstance(outcome, ClientError):
                batch.outcome = REFUSED
                return
            receipt = outcome
        self._under_way.append((receipt, batch))

    def _take_receipts(self) -> None:
        """Note the outcomes of the records sent."""
        waiting: list[tuple[RecordReceipt, SentBatch]] = []
        for receipt, batch in self._under_way:
            if not receipt.is_done:
                waiting.append((receipt, batch))
            elif (error := receipt.error) is not None:
                self._refuse(batch, error)
            elif self.is_answered:
                promised = self._history.promised.setdefault(batch.place, [])
                promised.append(batch.records[0].value)
                if receipt.offset >= 0:
                    self.context.history.acknowledge(batch, receipt.offset, None)
        self._under_way = waiting

    def _refuse(self, batch: SentBatch, error: ClientError) -> None:
        """Note a record that failed: a violation unless its delivery timed out."""
        if not isinstance(error, DeliveryTimedOut):
            self.context.history.violate(f"a record of {self.name} failed: {error}")
        batch.outcome = REFUSED
