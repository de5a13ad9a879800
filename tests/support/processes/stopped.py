"""Program: a member and a producer, to be stopped for longer than the member's session.

python stopped.py BOOTSTRAP TOPIC FACE

Writes a line for each event of the group.  Ends when it owns its partition again.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from tests.support.client.faces import make_face

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic, name = sys.argv[1:]
face = make_face(name)


class Teller(face.Listener):  # type: ignore[misc, name-defined]
    """Listener that writes what it hears."""

    def __init__(self) -> None:
        self.assigned = 0

    def on_assigned(self, consumer: Any, places: list[tuple[str, int]]) -> None:
        self.assigned += len(places)
        os.write(1, b"assigned\n" if places else b"")

    def on_revoked(self, consumer: Any, places: list[tuple[str, int]]) -> None:
        os.write(1, b"revoked\n")

    def on_lost(self, consumer: Any, places: list[tuple[str, int]]) -> None:
        os.write(1, b"lost\n")


teller = Teller()
count = 0
producer = face.Producer(bootstrap_servers=bootstrap)
consumer = face.Consumer(
    topic,
    listener=teller,
    bootstrap_servers=bootstrap,
    group_id=topic,
    session_timeout_ms=500,
    heartbeat_interval_ms=100,
)
while teller.assigned < 2:
    face.run(producer.send(topic, b"%d" % count))
    count += 1
    face.run(consumer.poll(0.01))
teller.on_revoked = lambda consumer, places: None
for client in (consumer, producer):
    face.run(client.close())
face.close()
os.write(1, b"%d\n" % count)
