"""A member that is `tarry consume --group`: what it prints says what it reads."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from typing import Final

from tests.support.interop.group_members import Event, Watch, end_process, owned, start_reader

# "NAME: reads TOPIC:0-2,5 (generation 3, range)"; nothing to read names no topic.
READS: Final = re.compile(rb": (?:reads \S+:([\d,-]+)|has nothing to read) \(generation ")


class CommandMember:
    """Commits once a second, and says nothing of it."""

    def __init__(self, name: str, watch: Watch, words: list[str]) -> None:
        address, group, topic, assignor, session_ms, heartbeat_ms = words
        self.name = name
        self.watch = watch
        self.events: list[Event] = []
        self.errors: list[bytes] = []
        settings = {
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": heartbeat_ms,
            "reconnect.backoff.max.ms": "200",
        }
        options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
        options += ["--assignor", assignor, "--follow", "-f", r"%p %o %s\n"]
        # One pipe for both: a record stays behind the assignment that it came by.
        self.run = subprocess.Popen(
            [sys.executable, "-m", "tarry", "consume", topic, "-b", address, "-G", group, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.readers = [start_reader(self.run.stdout, self._hear)]

    def _hear(self, line: bytes) -> None:
        words = line.split()
        if len(words) == 3 and words[0].isdigit():
            record = [int(words[0]), int(words[1]), words[2].decode()]
            self.watch.hear(self.events, Event(time.monotonic_ns(), "read", [record]))
            return
        self.errors.append(line)
        found = READS.search(line)
        if found is not None:
            had, has = owned(self), numbers_of(found[1] or b"")
            for what, partitions in (("revoked", had - has), ("assigned", has - had)):
                if partitions:
                    event = Event(time.monotonic_ns(), what, sorted(partitions))
                    self.watch.hear(self.events, event)

    def leave(self) -> None:
        self.run.terminate()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        self.run.wait()
        self.watch.hear_end(self.events, "left")

    def kill(self) -> None:
        self.run.kill()
        self.run.wait()
        self.watch.hear_end(self.events, "killed")

    def close(self) -> None:
        end_process(self.run, self.readers)


def numbers_of(ranges: bytes) -> frozenset[int]:
    """The numbers of `0-2,5`."""
    found: set[int] = set()
    for span in ranges.split(b",") if ranges else ():
        first, _, last = span.partition(b"-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)
