"""Spark sessions under measurement, and the topics that they read: what bench/spark.py and the
search give orders to."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from peers import Broker, tell_progress
from spark_settings import AS_IT_COMES, READING, WRITING, Settings

from tarry.client import Admin, NewTopic, Producer

WORKER: Final = Path(__file__).with_name("spark_worker.py")

PARTITIONS: Final = 8
VALUE: Final = b"x" * 100
BATCH_BYTES: Final = 128 << 10
STOP_SECONDS_MAX: Final = 60
# A session that needs longer for one work is taken for hung.
ANSWER_SECONDS_MAX: Final = 600

Figures = dict[str, float]


class Session:
    """Worker process of one column: a format, with its settings."""

    def __init__(self, name: str, form: str, jars: str, settings: Settings = AS_IT_COMES) -> None:
        self.name = name
        self.form = form
        self.settings = settings
        # Why it ended by itself: of a session that has no memory left nothing more is measured.
        self.ended = ""
        variables = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONDONTWRITEBYTECODE", "TARRY_PURE")
        }
        # Spark speaks much; only what it says before it ends counts.
        self._told = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  # `end` closes it
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), form, jars, json.dumps(settings.session)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            text=True,
            env=variables,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, work: str, **order: Any) -> Figures | None:
        """Give an order, and return its figures; None if the session ends over it, or has ended."""
        if self.ended:
            return None
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        settings = {READING: self.settings.reading, WRITING: self.settings.writing}
        try:
            process.stdin.write(json.dumps({"work": work, **settings, **order}) + "\n")
            process.stdin.flush()
            seconds = ANSWER_SECONDS_MAX + 60 * order.get("minutes", 0)
            is_there, _, _ = select.select([process.stdout], [], [], seconds)
            told = process.stdout.readline() if is_there else ""
        except BrokenPipeError:
            told = ""
        if not told:
            process.kill()
            self._told.seek(0)
            text = self._told.read()
            self.ended = "out of memory" if "OutOfMemoryError" in text else "ended"
            print(f"\nthe Spark of {self.name} ended in {work}: {text[-2000:]}", file=sys.stderr)
            return None
        tell_progress()
        figures: Figures = json.loads(told)
        return figures

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(STOP_SECONDS_MAX)
        self._process.stdout.close()
        self._told.close()


@contextlib.contextmanager
def topic_on(broker: Broker, partitions: int = PARTITIONS) -> Iterator[str]:
    """Make a topic that lasts as long as the context."""
    name = f"bench-{time.time_ns()}"
    with Admin(bootstrap_servers=broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(name, partitions)])
        assert outcome.error is None, outcome.error
        try:
            yield name
        finally:
            admin.delete_topics([name])


def fill(
    broker: Broker, topic: str, rows: int, value_of: Callable[[int], bytes] = lambda _: VALUE
) -> None:
    """Send so many records, of 100 bytes if nothing else is said."""
    with Producer(
        bootstrap_servers=broker.address, batch_size=BATCH_BYTES, linger_ms=20
    ) as producer:
        for number in range(rows):
            producer.send(topic, value_of(number), partition=number // 1000 % PARTITIONS)


@contextlib.contextmanager
def fed(broker: Broker, topic: str, records_per_second: int) -> Iterator[None]:
    """Send records at a rate while the context lasts."""
    ended = threading.Event()

    def feed() -> None:
        with Producer(bootstrap_servers=broker.address, linger_ms=5) as producer:
            began, sent = time.monotonic(), 0
            while not ended.wait(0.01):
                due = int((time.monotonic() - began) * records_per_second)
                for number in range(sent, due):
                    producer.send(topic, VALUE, partition=number % PARTITIONS)
                sent = due

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
