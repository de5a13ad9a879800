"""A second coordinator, of counters that survive, and a broker by hand that has it.

A record holds a counter's total.  Additions chain: each stands on the newest total, durable or not,
and one that the log has not kept is taken back.  Seals are control batches.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, NamedTuple

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.coordinator.coordinator import Coordinator
from tarry.broker.coordinator.runtime import ShardContext, ShardLoad, ShardState
from tarry.broker.coordinator.tickets import NO_TICKET, Asked
from tarry.broker.lifecycle import SERVICES, start_broker
from tarry.broker.route import Route
from tarry.cluster.decisions.topic_decisions import TopicWanted
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.purgatory import Purgatory
from tarry.records import BatchBuilder, Record
from tarry.records.batch import CONTROL_BIT, BatchHeader
from tarry.simulation.by_hand import BrokerByHand

COUNTERS = "counters"
# No key type of FindCoordinator's.
COUNTER = 100
TIMEOUT_MS = 2_000


class Total(NamedTuple):
    """A record: a counter is so high."""

    name: str
    total: int


class Addition(NamedTuple):
    """An append: so much was added, and a request waits for it.  Without a name it is a seal."""

    name: str
    amount: int
    ticket: int = NO_TICKET


class Addends(Asked[int]):
    """A request that waits for its addition; what it was answered."""

    def __init__(self) -> None:
        self.codes: list[int] = []

    def answer(self, answer: int) -> None:
        self.codes.append(answer)

    def refuse(self, error_code: int) -> None:
        self.codes.append(error_code)


class CounterShard(ShardState[Total, Addition]):
    """The counters of one partition."""

    def __init__(self, partition: ReplicatedLog, context: ShardContext) -> None:
        super().__init__(partition, context)
        self.tickets = context.tickets
        # The durable value, and the value once all appends under way are durable.
        self.totals: dict[str, int] = {}
        self.newest: dict[str, int] = {}
        self.is_sealed = False
        # The offsets of the applied records, and the amounts that were taken back.
        self.offsets: list[int] = []
        self.taken_back: list[int] = []

    def add(self, name: str, *amounts: int, can_be_split: bool = False) -> Addends:
        """Add amounts in one append; who waits for it."""
        asked = Addends()
        ticket = self.tickets.issue(asked)
        records = []
        for amount in amounts:
            self.newest[name] = self.newest.get(name, 0) + amount
            records.append(Total(name, self.newest[name]))
        addition = Addition(name, sum(amounts), ticket)
        error_code = self.runtime.append(addition, records, ticket, can_be_split)
        if error_code != errors.NONE:
            self.on_append_failed(addition, error_code)
        return asked

    def seal(self) -> None:
        """Append a control batch."""
        builder = BatchBuilder()
        builder.append(0, b"\0\0\0\7", b"")
        assert not self.runtime.append_batches(
            Addition("", 0), [], [builder.build(attributes=CONTROL_BIT)]
        )

    def encode(self, record: Total) -> tuple[bytes, bytes | None]:
        return record.name.encode(), str(record.total).encode()

    def apply(self, record: Total, offset: int) -> None:
        self.totals[record.name] = record.total
        self.offsets.append(offset)

    def on_recorded(self, append: Addition) -> None:
        if not append.name:
            self.is_sealed = True
        self.tickets.answer(append.ticket, errors.NONE)

    def on_append_failed(self, append: Addition, error_code: int) -> None:
        self.newest[append.name] -= append.amount
        self.taken_back.append(append.amount)
        self.tickets.answer(append.ticket, error_code)

    def begin_load(self) -> ShardLoad:
        return CounterLoad(self)

    def size(self) -> int:
        return len(self.totals)

    def on_unload(self) -> None:
        self.totals = {}


class CounterLoad(ShardLoad):
    """Loads counters."""

    def __init__(self, shard: CounterShard) -> None:
        self.shard = shard

    def add(self, key: bytes, value: bytes | None, offset: int) -> None:
        assert value is not None
        self.shard.totals[key.decode()] = int(value)
        self.shard.offsets.append(offset)

    def add_control(self, header: BatchHeader, record: Record) -> None:
        assert record.key == b"\0\0\0\7"
        self.shard.is_sealed = True

    def step(self) -> bool:
        self.shard.newest = dict(self.shard.totals)
        return True


class CounterCoordinator(Coordinator[CounterShard]):
    """The coordinator of counters."""

    def new_shard(self, partition: ReplicatedLog) -> CounterShard:
        return CounterShard(partition, self.context)

    def topic_wanted(self, settings: Settings, brokers: int) -> TopicWanted:
        return TopicWanted(COUNTERS, 2, 1)


def serve_counters(broker: Broker) -> list[Route[Any]]:
    """Let a broker coordinate counters, which no request asks for."""
    context = ShardContext(
        "counters",
        broker.this_turn,
        broker.flushes,
        Purgatory(broker.timer, "Counters"),
        TIMEOUT_MS,
        logging.getLogger("tarry.counters"),
    )
    counters = CounterCoordinator(COUNTERS, COUNTER, context, broker.cluster)
    broker.coordinators.register(broker.parts.add(counters))
    return []


class CounterBroker(BrokerByHand):
    """A broker by hand that coordinates counters as well as groups."""

    def __init__(self, settings: dict[str, str]) -> None:
        services = [*SERVICES, serve_counters]
        super().__init__(settings, start=partial(start_broker, services=services))

    @property
    def counters(self) -> CounterCoordinator:
        """The coordinator of this life of the broker."""
        found = self.broker.coordinators.of_key_type(COUNTER)
        assert isinstance(found, CounterCoordinator)
        return found

    def partition(self, index: int = 0) -> ReplicatedLog:
        """A partition of the topic that keeps the counters."""
        return self.broker.topics[COUNTERS].partitions[index]
