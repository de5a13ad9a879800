"""Program: forks while threads send, poll, commit and ask; each child tries every call.

python fork_while_clients_work.py BOOTSTRAP TOPIC
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tarry.client import Admin, ClientForked, Consumer, Producer

SENDERS = 8
RECORDS = 300
FORKS = 6

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic = sys.argv[1:]
place = (topic, 0)
producer = Producer(bootstrap_servers=bootstrap, batch_size=1_000)
reader = Consumer(
    topic, bootstrap_servers=bootstrap, group_id="readers", auto_offset_reset="earliest"
)
committer = Consumer(bootstrap_servers=bootstrap, group_id="committers")
admin = Admin(bootstrap_servers=bootstrap)
lingering = producer.send(topic, b"0-0000")
seen: list[bytes] = []
is_over = threading.Event()


def send(number: int) -> None:
    for count in range(1 if number == 0 else 0, RECORDS):
        receipt = producer.send(topic, b"%d-%04d" % (number, count))
        if count % 40 == 0:
            receipt.result()


def read() -> None:
    while len(seen) < SENDERS * RECORDS:
        for group in reader.poll(0.1):
            seen.extend(record.value or b"" for record in group.records)


def commit() -> None:
    committer.assign([place])
    count = 0
    while not is_over.is_set():
        count += 1
        committer.commit({place: count})


def ask() -> None:
    while not is_over.is_set():
        admin.list_topics()


def calls() -> dict[str, Callable[[], Any]]:
    """Every call of every client, by a name for the complaint."""
    found: dict[str, Callable[[], Any]] = {
        "send": lambda: producer.send(topic, b"of the child"),
        "send to a place": lambda: producer.send(topic, b"of the child", partition=0),
        "send elsewhere": lambda: producer.send("unknown", b"of the child"),
        "flush": producer.flush,
        "partition_count": lambda: producer.partition_count(topic),
        "trouble": lambda: producer.trouble,
        "settled": lambda: producer.settled,
        "acknowledged": lambda: producer.acknowledged,
        "is_waiting": lambda: producer.is_waiting,
        "abort": producer.abort,
        "close": producer.close,
        "the end of with": lambda: producer.__exit__(None, None, None),
        "list_topics": admin.list_topics,
        "describe_cluster": admin.describe_cluster,
        "create_topics": lambda: admin.create_topics([]),
        "admin.offsets": lambda: admin.offsets({place: 0}),
        "admin.close": admin.close,
        "admin, the end of with": lambda: admin.__exit__(None, None, None),
    }
    for name, one in {"reader": reader, "committer": committer}.items():
        found |= {f"{name}: {what}": call for what, call in consumer_calls(one).items()}
    return found


def consumer_calls(consumer: Consumer) -> dict[str, Callable[[], Any]]:
    return {
        "poll": lambda: consumer.poll(0.0),
        "iteration": lambda: next(iter(consumer)),
        "batches": lambda: next(consumer.batches()),
        "commit": consumer.commit,
        "commit_async": consumer.commit_async,
        "commit an offset": lambda: consumer.commit({place: 7}),
        "committed": lambda: consumer.committed([place]),
        "subscribe": lambda: consumer.subscribe([topic]),
        "unsubscribe": consumer.unsubscribe,
        "subscription": consumer.subscription,
        "assignment": consumer.assignment,
        "group": lambda: consumer.group,
        "wakeup": consumer.wakeup,
        "partitions_of": lambda: consumer.partitions_of(topic),
        "assign": lambda: consumer.assign([place]),
        "seek": lambda: consumer.seek(topic, 0, 0),
        "seek_to_beginning": consumer.seek_to_beginning,
        "pause": lambda: consumer.pause([place]),
        "position": lambda: consumer.position(topic, 0),
        "positions": consumer.positions,
        "lag": lambda: consumer.lag(topic, 0),
        "end_offsets": lambda: consumer.end_offsets([place]),
        "trouble": lambda: consumer.trouble,
        "close": consumer.close,
        "the end of with": lambda: consumer.__exit__(None, None, None),
    }


def be_a_child() -> None:
    """Complain of each call that is not refused, and of each descriptor of the parent's."""
    for name, call in calls().items():
        try:
            call()
        except ClientForked:
            continue
        except BaseException as error:
            complain(f"{name} raised {error!r}")
        else:
            complain(f"{name} was not refused")
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
        if target.startswith(("socket:", "anon_inode:[eventpoll]")):
            complain(f"descriptor {number} is open: {target}")
    for one in (producer, reader, committer, admin):
        if "of the parent process" not in repr(one):
            complain(repr(one))


def complain(sentence: str) -> None:
    os.write(2, f"{sentence}\n".encode())


def fork(number: int) -> None:
    child = os.fork()
    if child == 0:
        be_a_child()
        if number % 2:
            os._exit(0)
        # The whole end of an interpreter: its exit functions, its collector.
        sys.exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        complain(f"child {number} failed")


threads = [threading.Thread(target=send, args=(number,)) for number in range(SENDERS)]
threads += [threading.Thread(target=one) for one in (read, commit, ask)]
for thread in threads:
    thread.start()
for number in range(FORKS):
    seen_before = len(seen)
    fork(number)
    # The next fork finds other records under way.
    while threads[SENDERS].is_alive() and len(seen) < seen_before + RECORDS:
        is_over.wait(0.001)
for thread in threads[: SENDERS + 1]:
    thread.join()
is_over.set()
for thread in threads[SENDERS + 1 :]:
    thread.join()
reader.commit()
numbers = [[one for one in seen if one.startswith(b"%d-" % thread)] for thread in range(SENDERS)]
order = "in order" if all(one == sorted(set(one)) for one in numbers) else "out of order"
committed = reader.committed([place])[place]
assert committed is not None
sys.stdout.write(f"{len(seen)} {order}, committed {committed.offset}")
lingering.result()
for one in (producer, reader, committer, admin):
    one.close()
