"""A broker that loses the end of a log: killed, cut on its disk and started again, as after a loss
of power where records count that are not flushed (`flush.policy=os`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.broker_process import BrokerProcess

from tarry.client import Admin, NewTopic, Producer
from tarry.log.recovery.points import RECOVERY_POINTS_FILE

# Of a batch, the part before what its length counts.
LENGTH_AT: Final = 8
LENGTH_END: Final = 12

UNFLUSHED: Final = {"flush.policy": "os"}


class LosingBroker:
    """Broker in a process, whose logs can be cut."""

    def __init__(self, directory: Path) -> None:
        self.process = BrokerProcess(directory)
        self.process.start(UNFLUSHED)

    @property
    def bootstrap(self) -> str:
        return self.process.address

    def make(self, *topics: str, partitions: int = 1) -> None:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, partitions) for topic in topics])

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Send records, each in a batch of its own."""
        with Producer(bootstrap_servers=self.bootstrap, acks="all") as producer:
            for value in values:
                producer.send(topic, value, partition=partition)
                producer.flush()

    def lose_from(self, topic: str, offset: int, partition: int = 0) -> None:
        """Kill the broker, take away what a log holds from this offset on, and start it again."""
        self.process.kill()
        (path,) = (self.process.directory / "data" / f"{topic}-{partition}").glob("*.log")
        data = path.read_bytes()
        at = 0
        while at < len(data) and int.from_bytes(data[at : at + LENGTH_AT]) < offset:
            at += LENGTH_END + int.from_bytes(data[at + LENGTH_AT : at + LENGTH_END])
        path.write_bytes(data[:at])
        # The log seems never flushed before that: a gap in a durable log would be damage.
        (self.process.directory / "data" / RECOVERY_POINTS_FILE).unlink(missing_ok=True)
        self.process.start()

    def restart(self, *, is_clean: bool) -> None:
        """End the broker, and start it again with all that it had."""
        if is_clean:
            self.process.stop()
        else:
            self.process.kill()
        self.process.start()

    def close(self) -> None:
        self.process.close()
