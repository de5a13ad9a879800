"""Program: clients while no descriptor is left, and when there are some again.

python no_descriptors.py BOOTSTRAP TOPIC FACE
"""

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Callable

from tests.support.client.faces import make_face
from tests.support.client.late import error_when_late

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic, name = sys.argv[1:]
place = (topic, 0)
face = make_face(name)
run = face.run
producer = face.Producer(bootstrap_servers=bootstrap)
consumer = face.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
consumer.assign([place])
admin = face.Admin(bootstrap_servers=bootstrap)

resource.setrlimit(resource.RLIMIT_NOFILE, (60, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
taken: list[int] = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass


def complaint(call: Callable[[float], object]) -> str:
    return str(error_when_late(call, "too many open files", 0.3))


def ask_a_new_producer(time_s: float) -> None:
    """Make a producer, which may need descriptors at once or when it is first used."""
    made = face.Producer(bootstrap_servers=bootstrap)
    try:
        run(made.partition_count(topic, timeout=time_s))
    finally:
        run(made.close())


def ask_a_new_consumer(time_s: float) -> None:
    made = face.Consumer(bootstrap_servers=bootstrap)
    try:
        run(made.partitions_of(topic, timeout=time_s))
    finally:
        run(made.close())


complaints = [
    complaint(ask_a_new_producer),
    complaint(ask_a_new_consumer),
    complaint(lambda time_s: run(producer.partition_count(topic, timeout=time_s))),
    complaint(lambda time_s: run(admin.list_topics(timeout=time_s))),
    complaint(lambda time_s: run(consumer.end_offsets([place], timeout=time_s))),
]
none = run(consumer.poll(0.3))
for number in taken:
    os.close(number)
# Now each goes on by itself.
face.outcome(run(producer.send(topic, b"taken")))
(value,) = face.read(consumer, 1)
run(admin.list_topics())
for client in (producer, consumer, admin):
    run(client.close())
face.close()
assert none == []
for one in complaints:
    assert "too many open files" in one, complaints
sys.stdout.write(f"{value!r}")
