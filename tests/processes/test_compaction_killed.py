"""A broker that is killed while it compacts: every last value that was acknowledged is there."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until

from tarry.client.core.admin.calls import NewTopic
from tarry.client.core.consumer.lookup import LATEST, FoundOffset
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.producer import Producer

TOPIC = "last-values"
ROUNDS = 2
TEXTS = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.min.cleanable.ratio": "0.01",
    # A few hundred keys a pass.
    "log.cleaner.dedupe.buffer.size": "50000",
}


def write(address: str, chance: random.Random, last: dict[bytes, bytes], first: int) -> None:
    """Acknowledged records of 500 keys, in segments of a batch or so each."""
    with Producer(bootstrap_servers=address, batch_size=8_000) as producer:
        for number in range(first, first + 3_000):
            key = b"k%d" % chance.randrange(500)
            last[key] = b"%d" % number
            producer.send(TOPIC, last[key], key=key, timestamp=1_700_000_000_000 + number)
        producer.flush()


def read(address: str) -> tuple[dict[bytes, bytes], int]:
    """The last value of every key, and how many records there are."""
    found: dict[bytes, bytes] = {}
    count = 0
    with Admin(bootstrap_servers=address) as admin, Consumer(bootstrap_servers=address) as consumer:
        answer = admin.offsets({(TOPIC, 0): LATEST})[(TOPIC, 0)]
        assert isinstance(answer, FoundOffset)
        end = answer.offset
        consumer.assign([(TOPIC, 0)])
        consumer.seek_to_beginning()
        offset = -1
        while offset < end - 1:
            for group in consumer.poll(5.0):
                for record in group.records:
                    assert record.offset > offset
                    offset = record.offset
                    assert record.key is not None
                    assert record.value is not None
                    found[record.key] = record.value
                    count += 1
    return found, count


def is_begun(partition: Path) -> bool:
    """Whether the broker compacts the partition, by a file that it writes; watch for a second."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if list(partition.glob("*.cleaned")):
            return True
        time.sleep(0.002)  # another process does it
    return False


@pytest.mark.slow
def test_a_kill_in_the_middle_of_compaction_loses_no_last_value(tmp_path: Path) -> None:
    chance = random.Random(4)
    broker = BrokerProcess(tmp_path)
    broker.start(TEXTS)
    last: dict[bytes, bytes] = {}
    try:
        with Admin(bootstrap_servers=broker.address) as admin:
            configs = {"cleanup.policy": "compact", "segment.ms": "1"}
            admin.create_topics([NewTopic(TOPIC, 1, 1, configs)])
        partition = Path(broker.directory, "data", f"{TOPIC}-0")
        first = itertools.count(step=3_000)
        for _ in range(ROUNDS):
            write(broker.address, chance, last, next(first))
            # Compaction that nobody saw on a busy machine has an end: it gets more to do.
            while not is_begun(partition):
                write(broker.address, chance, last, next(first))
            broker.kill()
            broker.start()

            found, _ = read(broker.address)

            assert found == last
        broker.wait_for_log("is compacted below offset")
        wait_until(
            lambda: "yes" if read(broker.address)[1] < 1_500 else "", "most records are gone"
        )
        assert read(broker.address)[0] == last
    finally:
        broker.close()
