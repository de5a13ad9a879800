"""One partition on a simulated disk, led by broker 1, and the steps of a turn one by one."""

from __future__ import annotations

import random

from tarry.base.partition_row import PartitionRow
from tarry.base.turn import Turn
from tarry.log.config import LogConfig
from tarry.log.logs import Logs
from tarry.partition.leader import AppendResult, append_as_leader
from tarry.partition.leadership import Leadership
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener, ReplicatedLog
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.reader import window_of

NOW_MS = 5_000
NOW_WALL_MS = 1_800_000_000_000
LEADER = 1
EXPIRATION_MS = 1_000


def a_batch(
    *values: bytes,
    key: bytes | None = b"k",
    at_ms: int = NOW_WALL_MS,
    codec: int = 0,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    attributes: int = 0,
) -> bytes:
    """A batch with a record for each value, or with one."""
    builder = BatchBuilder()
    for value in values or (b"v",):
        builder.append(at_ms, key, value)
    if producer_id < 0:
        return builder.build(codec, attributes=attributes)
    return builder.build(
        codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=attributes,
    )


class PartitionScene:
    """The partition `orders-0`, alone in sync unless a test says otherwise."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(random.Random(3))
        self.config = LogConfig()
        self.turn = Turn(NOW_MS, NOW_WALL_MS)
        self.open()

    def open(self) -> None:
        """Recover the partition from the disk and lead it."""
        producers = ProducerStates(EXPIRATION_MS)
        logs = Logs(self.disk)
        logs.load()
        log = logs.open("orders-0", bytes(16), self.config, ProducerListener(producers))
        logs.settle()
        leadership = Leadership("orders", bytes(16), 0, LEADER)
        self.partition = ReplicatedLog(leadership, log, producers)
        self.lead(0, [LEADER], [LEADER])
        self.partition.begin_after_recovery()

    def lead(self, epoch: int, replicas: list[int], isr: list[int]) -> None:
        """Have broker 1 lead the partition."""
        row = PartitionRow(LEADER, epoch, -1, 0, replicas, isr)
        self.partition.leadership.take_row(row, True)

    def append(self, batch: bytes, *, acks: int = -1, version: int = 11) -> AppendResult:
        """Append a produced batch to the tail, or hear why not."""
        return append_as_leader(self.partition, window_of(batch), acks, version, self.turn)

    def write(self) -> bool:
        """Write the tail; True if those who wait should look again."""
        self.partition.log.write()
        return self.partition.on_written()

    def flush(self) -> bool:
        """Make durable what is written; True if those who wait should look again."""
        log = self.partition.log
        files = []
        directories: dict[str, None] = {}
        offset = log.collect_flush(files, directories)
        self.disk.flush(files, list(directories))
        log.flushed(offset)
        return self.partition.on_flushed(offset)

    def produce(self, *batches: bytes) -> None:
        """Append, write and flush."""
        for batch in batches:
            assert self.append(batch).error_code == 0
        self.write()
        self.flush()
