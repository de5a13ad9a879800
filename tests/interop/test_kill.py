"""kill -9 at random moments under load: what was acknowledged is there, at its offset."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.confluent_face import PRODUCER_SETTINGS, confluent_kafka, missing
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}")

MakeBroker = Callable[[], BrokerProcess]

TOPIC = "load"
PARTITIONS = 3

# Under way at once: enough that every kill meets requests in every stage.
UNDER_WAY_MAX = 600

# Kafka's smallest segment, and records that fill some of them, so that kills meet rolls too.
TOPIC_CONFIGS = {"segment.bytes": "1048576"}
PADDING = b"." * 300

# From the first acknowledgement to the kill, drawn anew for each round.
ROUND_SECONDS = (0.0, 0.3)
# Every third restart is killed as well, most often before it is ready.
EARLY_SECONDS = (0.05, 0.4)

READ_SECONDS_MAX = PATIENCE_S


class Load:
    """A producer that always has records under way, and what it was told of them."""

    def __init__(self, address: str, settings: dict[str, Any]) -> None:
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "log_level": 0,
                **PRODUCER_SETTINGS,
                # Small batches, so that many of them are under way.
                "linger.ms": 1,
                "batch.num.messages": 40,
                **settings,
            }
        )
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.errors: list[Any] = []

    def run(self, seconds: float) -> None:
        """Go on until the broker acknowledges again, and for `seconds` from then on."""
        acknowledged = self.acknowledged_count()
        give_up = time.monotonic() + READ_SECONDS_MAX
        while self.acknowledged_count() == acknowledged:
            assert time.monotonic() < give_up
            self.keep_busy()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.keep_busy()

    def keep_busy(self) -> None:
        while len(self.producer) < UNDER_WAY_MAX:
            self.send()
        self.producer.poll(0.002)

    def acknowledged_count(self) -> int:
        return sum(len(records) for records in self.acknowledged)

    def send(self) -> None:
        number = sum(len(values) for values in self.sent)
        partition = number % PARTITIONS
        value = b"%d of partition %d" % (number, partition) + PADDING
        self.sent[partition].append(value)
        self.producer.produce(TOPIC, value, partition=partition, on_delivery=self.on_delivery)

    def on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)
            return
        # The same offset twice would be an offset whose content has changed.
        assert message.offset() not in self.acknowledged[message.partition()]
        self.acknowledged[message.partition()][message.offset()] = message.value()

    def finish(self) -> None:
        assert self.producer.flush(READ_SECONDS_MAX) == 0
        assert not self.errors, self.errors[:3]


def run_with_kills(broker: BrokerProcess, load: Load, rounds: int, chance: random.Random) -> None:
    for number in range(rounds):
        load.run(chance.uniform(*ROUND_SECONDS))
        broker.kill()
        if number % 3 == 2:
            kill_while_starting(broker, chance.uniform(*EARLY_SECONDS))
        broker.start()
    load.finish()


def kill_while_starting(broker: BrokerProcess, seconds: float) -> None:
    with subprocess.Popen(
        broker.command(),
        cwd=broker.directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()


def read_partition(address: str, partition: int) -> list[bytes]:
    """Every value of a partition; the place in the list is the offset."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
    )
    asked = confluent_kafka.TopicPartition(TOPIC, partition, 0)
    end_offset = consumer.get_watermark_offsets(asked, READ_SECONDS_MAX)[1]
    consumer.assign([asked])
    values: list[bytes] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    while len(values) < end_offset:
        assert time.monotonic() < deadline
        for message in consumer.consume(10_000, 0.2):
            assert message.error() is None
            assert message.offset() == len(values)
            values.append(message.value())
    consumer.close()
    return values


@pytest.fixture
def broker(make_broker: MakeBroker) -> BrokerProcess:
    broker = make_broker()
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.address})
    wanted = confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, config=TOPIC_CONFIGS)
    admin.create_topics([wanted])[TOPIC].result(READ_SECONDS_MAX)
    return broker


@pytest.mark.slow
def test_an_idempotent_producer_loses_and_doubles_nothing_over_twenty_kills(broker):
    load = Load(broker.address, {"enable.idempotence": True})

    run_with_kills(broker, load, 20, random.Random(20))

    for partition in range(PARTITIONS):
        found = read_partition(broker.address, partition)
        assert found == load.sent[partition]
        assert load.acknowledged[partition] == dict(enumerate(found))


@pytest.mark.slow
def test_what_was_acknowledged_to_a_plain_producer_survives_kills(broker):
    load = Load(broker.address, {"enable.idempotence": False, "acks": 1})

    run_with_kills(broker, load, 6, random.Random(6))

    for partition in range(PARTITIONS):
        found = read_partition(broker.address, partition)
        for offset, value in load.acknowledged[partition].items():
            assert found[offset] == value
