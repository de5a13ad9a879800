"""Program: workers of every kind that Python starts, beside a producer that goes on working.

python workers.py BOOTSTRAP TOPIC

Each worker is refused by the copy of the parent's producer, if it has one, and sends a record with
a producer of its own, which it forgets to close.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import warnings

from tarry.client import ClientForked, Producer

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic = sys.argv[1:]
inherited: Producer | None = None


def work(name: str) -> None:
    """Be a worker."""
    warnings.simplefilter("ignore", ResourceWarning)
    if inherited is not None:
        try:
            inherited.send(topic, b"by the parent's")
        except ClientForked:
            name = f"{name}, refused"
    own = Producer(bootstrap_servers=bootstrap, linger_ms=60_000)
    own.send(topic, name.encode())


def prefork(name: str) -> int:
    """Fork a worker as servers do, that ends as a program does."""
    child = os.fork()
    if child == 0:
        work(name)
        sys.exit(0)
    return child


def main() -> None:
    global inherited
    inherited = Producer(bootstrap_servers=bootstrap)
    inherited.send(topic, b"first").result()
    is_over = threading.Event()

    def go_on() -> None:
        assert inherited is not None
        count = 0
        while not is_over.is_set():
            inherited.send(topic, b"%d" % count).result()
            count += 1

    parent = threading.Thread(target=go_on)
    parent.start()
    children = [prefork(f"preforked {number}") for number in range(2)]
    processes = []
    for method in ("fork", "forkserver", "spawn"):
        process = multiprocessing.get_context(method).Process(target=work, args=(method,))
        process.start()
        processes.append(process)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    for process in processes:
        process.join()
    codes += [process.exitcode or 0 for process in processes]
    is_over.set()
    parent.join()
    inherited.send(topic, b"last").result()
    inherited.close()
    sys.stdout.write(f"{codes}")


if __name__ == "__main__":
    main()
