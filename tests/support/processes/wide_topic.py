"""Requests that name each partition of a topic of thousands, against a real broker.

    python -m tests.support.processes.wide_topic [PARTITIONS]

The table of `hostile_requests`, a line for each request; below it the longest time that a producer
beside waited for its record to be durable.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.patience import tries
from tests.support.processes.hostile_requests import HEAD, Wire, measure, say, serving
from tests.support.wide_requests import a_list_offsets, creation, wide_requests

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    decode_create_topics_response,
)
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.list_offsets import decode_list_offsets_response
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
    decode_produce_response,
)
from tarry.records import BatchBuilder
from tarry.wire.reader import Reader, window_of


class Producer(threading.Thread):
    """A client that writes a record again and again, and remembers its longest wait."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.wire = Wire(port)
        self.worst_s = 0.0
        self.is_over = False
        builder = BatchBuilder()
        builder.append(time.time_ns() // 1_000_000, None, b"honest")
        data = [PartitionProduceData(0, window_of(builder.build(0)))]
        topics = [TopicProduceData("orders", partition_data=data)]
        self.request = ProduceRequest(None, -1, 30_000, topics)

    def run(self) -> None:
        while not self.is_over:
            start_s = time.perf_counter()
            reader = Reader(self.wire.ask(api_keys.PRODUCE, 3, self.request), 4)
            self.worst_s = max(self.worst_s, time.perf_counter() - start_s)
            row = decode_produce_response(reader, 3).responses[0].partition_responses[0]
            assert row.error_code == errors.NONE, row.error_code
            time.sleep(0.002)


def frames(wire: Wire, count: int) -> Iterator[tuple[str, int, int, Message]]:
    """Create a topic of so many partitions, wait for its logs, then name each of them."""
    reader = Reader(wire.ask(api_keys.CREATE_TOPICS, 7, creation(count)), 5)
    created = decode_create_topics_response(reader, 7).topics[0]
    assert created.error_code == errors.NONE, created.error_message
    for _ in tries():
        ends = Reader(wire.ask(api_keys.LIST_OFFSETS, 1, a_list_offsets(count, -1)), 4)
        rows = decode_list_offsets_response(ends, 1).topics[0].partitions
        if all(row.error_code == errors.NONE for row in rows):
            break
    for each in wide_requests(count, created.topic_id):
        yield each.label, each.key, each.version, each.request


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("partitions", type=int, nargs="?", default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory), 1) as brokers:
        wire = Wire(brokers[0].port)
        orders = CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
        wire.ask(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest([orders], timeout_ms=30_000))
        wire.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="wide-group"))
        say(HEAD)
        for frame in frames(wire, asked.partitions):
            producer = Producer(wire.port)
            producer.start()
            measure(brokers, *frame)
            producer.is_over = True
            producer.join()
            say(f"      a producer beside it waited for {producer.worst_s * 1e3:.1f} ms at most")


if __name__ == "__main__":
    main()
