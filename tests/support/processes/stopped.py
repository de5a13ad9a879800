"""Program: a member and a producer, to be stopped for longer than the member's session.

python stopped.py BOOTSTRAP TOPIC

Writes a line for each event of the group.  Ends when it owns its partition again.
"""

from __future__ import annotations

import os
import sys

from tarry.client import Consumer, Listener, Producer

bootstrap, topic = sys.argv[1:]


class Teller(Listener):
    """Listener that writes what it hears."""

    def __init__(self) -> None:
        self.assigned = 0

    def on_assigned(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
        self.assigned += len(places)
        os.write(1, b"assigned\n" if places else b"")

    def on_revoked(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
        os.write(1, b"revoked\n")

    def on_lost(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
        os.write(1, b"lost\n")


teller = Teller()
count = 0
with (
    Producer(bootstrap_servers=bootstrap) as producer,
    Consumer(
        topic,
        listener=teller,
        bootstrap_servers=bootstrap,
        group_id="stopped",
        session_timeout_ms=500,
        heartbeat_interval_ms=100,
    ) as consumer,
):
    while teller.assigned < 2:
        producer.send(topic, b"%d" % count)
        count += 1
        consumer.poll(0.01)
    teller.on_revoked = lambda consumer, places: None  # type: ignore[method-assign]
os.write(1, b"%d\n" % count)
