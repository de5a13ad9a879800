"""Load of real clients on a cluster: idempotent producers of librdkafka and of Java, and a group.

Each producer writes numbers to its own topic in rounds of a record a partition, and waits for all
of a round.  An error that a client does not handle by itself counts as one.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import confluent_kafka
from tests.support.broker_process import wait_until
from tests.support.interop.java_face import JavaProducer, JavaProgram
from tests.support.interop.records_sent import SentRecord
from tests.support.patience import PATIENCE_S

PARTITIONS = 6
# How often a round is sent: the load is not to starve two cores.
PAUSE_S = 0.01


class LoadedTopic(threading.Thread):
    """A producer that writes rounds until it is told to stop; what was written, what took longest
    and what went wrong.
    """

    def __init__(self, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.rounds = 0
        self.longest_s = 0.0
        self.errors: list[str] = []
        self.is_over = False

    @property
    def written(self) -> list[list[bytes]]:
        return [[b"%d" % number for number in range(self.rounds)] for _ in range(PARTITIONS)]

    def write(self, value: bytes) -> None:
        """Write a value to each partition and wait until all are acknowledged."""
        raise NotImplementedError

    def run(self) -> None:
        while not self.is_over and not self.errors:
            began = time.monotonic()
            try:
                self.write(b"%d" % self.rounds)
            except Exception as error:  # whatever a client raises is what is looked for
                self.errors.append(repr(error))
            self.rounds += 1
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            time.sleep(PAUSE_S)

    def take_longest_s(self) -> float:
        """The longest wait for a round since the last call."""
        longest_s, self.longest_s = self.longest_s, 0.0
        return longest_s

    def wait_for_more(self) -> None:
        wanted = self.rounds + 2
        wait_until(
            lambda: "yes" if self.errors or self.rounds >= wanted else "", f"more of {self.topic}"
        )
        assert not self.errors, self.errors

    def end(self) -> None:
        self.is_over = True
        self.join(PATIENCE_S)
        assert not self.errors, self.errors


class LibrdkafkaTopic(LoadedTopic):
    def __init__(self, addresses: str) -> None:
        super().__init__("librdkafka")
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": addresses,
                "enable.idempotence": True,
                "message.timeout.ms": PATIENCE_S * 1_000,
                "reconnect.backoff.max.ms": 200,
                "linger.ms": 2,
                "log_level": 0,
            }
        )

    def write(self, value: bytes) -> None:
        def note(error: Any, message: Any) -> None:
            if error is not None:
                self.errors.append(str(error))

        for index in range(PARTITIONS):
            self.producer.produce(self.topic, value, partition=index, on_delivery=note)
        left = self.producer.flush(PATIENCE_S)
        assert left == 0, f"{left} records are still under way"


class JavaTopic(LoadedTopic):
    def __init__(self, addresses: str, program: JavaProgram) -> None:
        super().__init__("java")
        settings = {"acks": "all", "enable.idempotence": "true", "linger.ms": "2"}
        self.producer = JavaProducer(program, addresses, settings)

    def write(self, value: bytes) -> None:
        for index in range(PARTITIONS):
            self.producer.send(self.topic, index, SentRecord(value, None, (), None))
        self.producer.flush()


class LibrdkafkaGroup(threading.Thread):
    """A member of a group that reads and commits; a record may come to it twice, none may be
    missing.
    """

    def __init__(self, addresses: str, topics: list[str]) -> None:
        super().__init__(daemon=True)
        self.found: dict[tuple[str, int], dict[bytes, int]] = {}
        self.errors: list[str] = []
        self.commits = 0
        self.is_over = False
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": addresses,
                "group.id": "load",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self.consumer.subscribe(topics)

    def run(self) -> None:
        while not self.is_over:
            messages = self.consumer.consume(1_000, 0.2)
            for message in messages:
                error = message.error()
                if error is not None:
                    # librdkafka tells of what it repeats by itself too.
                    if error.fatal():
                        self.errors.append(str(error))
                    continue
                place = (message.topic(), message.partition())
                counts = self.found.setdefault(place, {})
                counts[message.value()] = counts.get(message.value(), 0) + 1
            if messages:
                self._commit()
        self.consumer.close()

    def _commit(self) -> None:
        try:
            self.consumer.commit(asynchronous=False)
            self.commits += 1
        except confluent_kafka.KafkaException as error:
            # A member that was put out of its group commits nothing, and reads again.
            if error.args[0].fatal():
                self.errors.append(str(error))

    def end(self, load: LoadedTopic) -> None:
        """Wait until it has all of a topic."""

        def has_all() -> str:
            found = [self.found.get((load.topic, index), {}) for index in range(PARTITIONS)]
            return "yes" if self.errors or all(len(each) >= load.rounds for each in found) else ""

        wait_until(has_all, f"all of {load.topic} in the group")
        assert not self.errors, self.errors

    @property
    def doubled(self) -> int:
        """How many records came more than once."""
        return sum(count - 1 for counts in self.found.values() for count in counts.values())
