#!/usr/bin/env python3
"""Compaction of a large log in a running broker: its time, the longest turn, the memory.

Fills a compacted topic through the broker's own turns, then lets it become due and times every turn
of the loop until the log is clean.  Another topic is written to all the while.  What a turn took
beyond its CPU it spent waiting for the device or for other processes.

    bench/compaction.py [--bytes N] [--keys N] [--value N] [--records N] [--codec C] [--buffer N]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

import tarry
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import start_broker
from tarry.cluster.decisions.topic_decisions import (
    TopicChange,
    TopicIds,
    TopicWanted,
    decide_create_topics,
)
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.builder import BatchBuilder
from tarry.runtime import clock
from tarry.runtime.loop import Machine
from tarry.runtime.memory import calm_collector
from tarry.wire.compression import NAMES

# Between two writes to the other topic.
OTHER_WRITES_MS = 10
TIMESTAMP = 1_700_000_000_000


class Pacer:
    """Driver that runs the broker's turns like the loop and remembers how long they took."""

    def __init__(self, machine: Machine, broker: Broker) -> None:
        self.machine = machine
        self.broker = broker
        self.begin()

    def begin(self) -> None:
        self.turns = 0
        self.longest_s = 0.0
        # Of the turn's own thread: what is more is the machine's doing, or the device's.
        self.longest_cpu_s = 0.0
        self.long_turns = 0
        self.memory_bytes = resident_bytes()

    def turn(self) -> None:
        timeout_ms = min(max(self.broker.next_due_ms() - clock.now_ms(), 0), 500)
        events = self.machine.reactor.wait(timeout_ms)
        begin_s, begin_cpu_s = time.perf_counter(), time.thread_time()
        self.broker.turn(events, clock.now_ms(), clock.now_wall_ms())
        spent_s, cpu_s = time.perf_counter() - begin_s, time.thread_time() - begin_cpu_s
        self.longest_cpu_s = max(self.longest_cpu_s, cpu_s)
        self.turns += 1
        self.longest_s = max(self.longest_s, spent_s)
        self.long_turns += spent_s > 0.010
        if self.turns % 100 == 0:
            self.memory_bytes = max(self.memory_bytes, resident_bytes())


def make_topic(pacer: Pacer, name: str, configs: dict[str, str]) -> ReplicatedLog:
    """Make a topic of one partition, without a client."""
    broker = pacer.broker
    decide = partial(
        decide_create_topics,
        wanted=[TopicWanted(name, 1, configs=list(configs.items()))],
        settings=broker.settings,
        ids=TopicIds(broker.random),
    )
    broker.store.change(TopicChange(decide))
    while name not in broker.topics:
        pacer.turn()
    return broker.topics[name].partitions[0]


def batch_of(options: argparse.Namespace, chance: random.Random) -> bytes:
    builder = BatchBuilder()
    half = options.value // 2
    for _ in range(options.records):
        key = b"user-%010d" % chance.randrange(options.keys)
        # Half of it can be compressed.
        builder.append(TIMESTAMP, key, chance.randbytes(half) + bytes(options.value - half))
    return builder.build(NAMES.index(options.codec))


def fill(pacer: Pacer, partition: ReplicatedLog, options: argparse.Namespace) -> None:
    chance = random.Random(3)
    log = partition.log
    while log.size_bytes < options.bytes:
        for _ in range(16):
            log.append_bytes(
                batch_of(options, chance), partition.leadership.leader_epoch, TIMESTAMP
            )
        pacer.broker.flushes.touch(partition)
        pacer.turn()
    # Compaction asks for a recovery point, which comes by itself.
    while log.is_dirty or log.recovery_point.offset < log.active.base_offset:
        pacer.turn()


def compact(pacer: Pacer, partition: ReplicatedLog, other: ReplicatedLog) -> None:
    log = partition.log
    target_offset = log.active.base_offset
    batch = BatchBuilder()
    batch.append(TIMESTAMP, b"k", b"v" * 1000)
    data = batch.build()
    log.config.min_cleanable_dirty_ratio = 0.5
    while not log.compaction.is_under_way:
        pacer.turn()
    pacer.begin()
    written_ms = 0
    while log.compaction.is_under_way:
        if pacer.broker.this_turn.now_ms >= written_ms + OTHER_WRITES_MS:
            written_ms = pacer.broker.this_turn.now_ms
            other.log.append_bytes(data, 0, TIMESTAMP)
            pacer.broker.flushes.touch(other)
        pacer.turn()
    assert log.compaction.cleaned_offset == target_offset


def measure(directory: str, options: argparse.Namespace) -> None:
    settings = Settings(
        {
            "log.dirs": directory,
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.cleaner.backoff.ms": "200",
            "log.cleaner.dedupe.buffer.size": str(options.buffer),
        }
    )
    machine = Machine(settings)
    machine.transport.bind()
    chance = random.SystemRandom()
    with calm_collector():
        broker = start_broker(
            machine.disk, machine.transport, chance, settings, clock.now_ms(), clock.now_wall_ms()
        )
    pacer = Pacer(machine, broker)
    segment_bytes = str(max(options.bytes // 16, 1 << 20))
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "1",
        "segment.bytes": segment_bytes,
    }
    partition = make_topic(pacer, "compacted", configs)
    other = make_topic(pacer, "other", {})
    fill(pacer, partition, options)
    log = partition.log
    print(f"{tarry.FORM}, {options}", flush=True)
    print(f"{log.size_bytes >> 20} MiB, {log.log_end_offset} records", flush=True)
    begin_bytes = resident_bytes()
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    compact(pacer, partition, other)
    spent_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    print(
        f"compacted to {log.size_bytes >> 20} MiB in {spent_s:.1f} s, {cpu_s:.1f} s of CPU; "
        f"{pacer.turns} turns, the longest {pacer.longest_s * 1000:.1f} ms "
        f"({pacer.longest_cpu_s * 1000:.1f} ms of CPU), "
        f"{pacer.long_turns} over 10 ms; "
        f"{begin_bytes >> 20} MiB of memory before, at most {pacer.memory_bytes >> 20} MiB"
    )
    machine.close()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--value", type=int, default=200)
    parser.add_argument("--records", type=int, default=50)
    parser.add_argument("--codec", default="none", choices=NAMES)
    parser.add_argument("--buffer", type=int, default=128 << 20)
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="tarry-compaction-")
    try:
        measure(directory, options)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
