"""Real clients that write and read while the broker that leads what they write is killed.

Each has a topic of its own with two partitions and three replicas of each, and begins at a broker
that leads neither.  It writes a third of its records, more while broker 1 is killed and gone, and
the rest when that one is back; meanwhile it reads the partition that the killed broker led.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol

from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.interop.client_face import ProducerFace
from tests.support.interop.records_sent import ReadRecord, SentRecord
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic

# The first of each leads: broker 1 is killed, and broker 3 leads nothing.
ASSIGNMENT: Final = [[1, 2, 3], [2, 3, 1]]
PARTITIONS: Final = len(ASSIGNMENT)
KILLED: Final = 1
FOLLOWER: Final = 3
# Of each partition: so many in each of three parts, and so many from every other broker afterwards.
PART: Final = 20
MORE: Final = 3
PARTS: Final = 3


class RidingFace(Protocol):
    """What a client has to do here."""

    def producer(self) -> ProducerFace: ...

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]: ...

    def close(self) -> None: ...


MakeFace = Callable[[str], RidingFace]


class Rider:
    """A client that writes, and another of its kind that reads."""

    def __init__(
        self, name: str, cluster: BrokerCluster, make_writer: MakeFace, make_reader: MakeFace
    ) -> None:
        self.name = name
        self.topic = f"ridden-{name}"
        self._cluster = cluster
        self._makers = (make_writer, make_reader)
        self.may_go_on = [threading.Event() for _ in range(PARTS)]
        self.may_go_on[0].set()
        pool = ThreadPoolExecutor(2)
        self.writing: Future[None] = pool.submit(self._write)
        self.reading: Future[list[ReadRecord]] = pool.submit(self._read)
        pool.shutdown(wait=False)

    def _address(self, broker_id: int) -> str:
        return self._cluster.brokers[broker_id].address

    def _write(self) -> None:
        face = self._makers[0](self._address(FOLLOWER))
        producer = face.producer()
        for part, may_go_on in enumerate(self.may_go_on):
            assert may_go_on.wait(PATIENCE_S)
            self._send(producer, part * PART, PART)
        producer.flush()
        producer.close()
        face.close()
        begin = PARTS * PART
        for broker_id in (1, 2):
            face = self._makers[0](self._address(broker_id))
            producer = face.producer()
            self._send(producer, begin, MORE)
            producer.flush()
            producer.close()
            face.close()
            begin += MORE

    def _send(self, producer: ProducerFace, begin: int, count: int) -> None:
        for number in range(begin, begin + count):
            for partition in range(PARTITIONS):
                producer.send(self.topic, partition, SentRecord(b"%d" % number))

    def _read(self) -> list[ReadRecord]:
        face = self._makers[1](self._address(2))
        try:
            return face.read(self.topic, 0, 0, PARTS * PART)
        finally:
            face.close()

    def read_from(self, broker_id: int, partition: int) -> list[tuple[int, bytes | None]]:
        """Offsets and values of a partition, read by a client that begins at this broker."""
        face = self._makers[1](self._address(broker_id))
        try:
            found = face.read(self.topic, partition, 0, PARTS * PART + 2 * MORE)
        finally:
            face.close()
        return [(one.offset, one.record.value) for one in found]


def create_topics(cluster: BrokerCluster, names: list[str]) -> None:
    """Make the topics of the riders with these names."""
    topics = [NewTopic(f"ridden-{name}", assignment=ASSIGNMENT) for name in names]
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        assert [each.error for each in admin.create_topics(topics)] == [None] * len(topics)
    for topic in topics:
        cluster.wait_until_known(topic.name)


def ride(cluster: BrokerCluster, riders: list[Rider]) -> None:
    """Kill broker 1 when all write, start it when all have written without it, see them through.

    Whoever has ended is not waited for; its outcome says why.
    """
    with Consumer(bootstrap_servers=cluster.brokers[FOLLOWER].address) as consumer:

        def wait_for(end: int) -> None:
            wait_until(lambda: have_written(consumer, riders, end), f"{end} records of each")

        wait_for(1)
        for rider in riders:
            rider.may_go_on[1].set()
        cluster.brokers[KILLED].kill()
        # kcat sends a line when the next one has come.
        wait_for(2 * PART - 1)
        cluster.start_broker(KILLED)
        for rider in riders:
            rider.may_go_on[2].set()
        for rider in riders:
            rider.writing.exception(PATIENCE_S)
            rider.reading.exception(PATIENCE_S)


def have_written(consumer: Consumer, riders: list[Rider], end: int) -> str:
    """Whether every partition of those that go on has as many records."""
    places = [
        (rider.topic, index)
        for rider in riders
        if not rider.writing.done()
        for index in range(PARTITIONS)
    ]
    found = consumer.end_offsets(places, PATIENCE_S) if places else {}
    return "yes" if all(each >= end for each in found.values()) else ""
