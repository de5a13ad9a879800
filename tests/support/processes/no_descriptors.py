"""Program: clients while no descriptor is left, and when there are some again.

python no_descriptors.py BOOTSTRAP TOPIC
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable

from tarry.client import Admin, ClientError, Consumer, Producer

bootstrap, topic = sys.argv[1:]
place = (topic, 0)
producer = Producer(bootstrap_servers=bootstrap)
consumer = Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
consumer.assign([place])
admin = Admin(bootstrap_servers=bootstrap)

resource.setrlimit(resource.RLIMIT_NOFILE, (60, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
taken: list[int] = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass


def complaint(call: Callable[[], object]) -> str:
    try:
        call()
    except ClientError as error:
        return str(error)
    return "none"


complaints = [
    complaint(lambda: Producer(bootstrap_servers=bootstrap)),
    complaint(lambda: Consumer(bootstrap_servers=bootstrap)),
    complaint(lambda: producer.partition_count(topic, timeout=0.3)),
    complaint(lambda: admin.list_topics(timeout=0.3)),
    complaint(lambda: consumer.end_offsets([place], timeout=0.3)),
]
groups = consumer.poll(0.3)
for number in taken:
    os.close(number)
# Now each goes on by itself.
producer.send(topic, b"taken").result()
while not groups:
    groups = consumer.poll(1.0)
admin.list_topics()
for client in (producer, consumer, admin):
    client.close()
for one in complaints:
    assert "too many open files" in one, complaints
sys.stdout.write(f"{groups[0].records[0].value!r}")
