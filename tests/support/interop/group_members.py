"""Members of a group in processes of their own, and what they tell of themselves.

Every member writes events in one form, whatever its client: a stamp of the machine's monotonic
clock, so that the events of several processes can be put in order, and what happened.  A thread
for each process collects them; a test waits for what it wants to see.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tests.support.patience import PATIENCE_S
from tests.support.process_lines import start_reader

# How long a test waits for a group, on a machine that is busy and with a broker that starts.
WAIT_SECONDS_MAX: Final = PATIENCE_S

# How long a look at the broker may be old while nothing is heard of the members.
LOOK_AGAIN_SECONDS: Final = 0.05

# Long enough for a machine that is busy, short enough to wait for the end of one that was killed.
SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 300

PROGRAM: Final = Path(__file__).with_name("member_program.py")


class Event(NamedTuple):
    """What happened to a member, when by the monotonic clock."""

    stamp_ns: int
    what: str
    data: Any


class Watch:
    """Wakes who waits when anything was heard of any member."""

    def __init__(self) -> None:
        self.changed = threading.Condition()

    def hear(self, events: list[Event], event: Event) -> None:
        with self.changed:
            events.append(event)
            self.changed.notify_all()

    def hear_end(self, events: list[Event], what: str) -> None:
        """The end of a member that can no longer tell it."""
        self.hear(events, Event(time.monotonic_ns(), what, None))

    def wait_until(self, is_so: Callable[[], object], what: Callable[[], str]) -> None:
        """Return once `is_so`; fail with what is the case instead."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while not is_so():
            assert time.monotonic() < end, what()
            with self.changed:
                self.changed.wait(LOOK_AGAIN_SECONDS)


class Member(Protocol):
    """One member, as the scenarios see it."""

    name: str
    events: list[Event]

    def leave(self) -> None:
        """Ask it to leave its group and end; return at once."""

    def kill(self) -> None:
        """kill -9: the group hears nothing."""

    def close(self) -> None:
        """For the end of a test, whatever has happened."""


def owned(member: Member) -> frozenset[int]:
    """The partitions a member has by its own words."""
    partitions: frozenset[int] = frozenset()
    for event in tuple(member.events):
        if event.what == "assigned":
            partitions |= set(event.data)
        elif event.what in ("revoked", "lost"):
            partitions -= set(event.data)
        elif event.what in ("left", "killed"):
            partitions = frozenset()
    return partitions


class MemberRun:
    """A member in a process of its own: the process, and the threads that read what it writes."""

    run: subprocess.Popen[bytes]
    readers: list[threading.Thread]

    def __init__(self, name: str, watch: Watch) -> None:
        self.name = name
        self.watch = watch
        self.events: list[Event] = []

    def kill(self) -> None:
        self.run.kill()
        self.run.wait()
        self.watch.hear_end(self.events, "killed")

    def close(self) -> None:
        end_process(self.run, self.readers)


class MemberProcess(MemberRun):
    """A member that `member_program.py` runs."""

    def __init__(self, name: str, watch: Watch, client: str, words: list[str]) -> None:
        super().__init__(name, watch)
        self.errors: list[str] = []
        self.run = subprocess.Popen(
            [sys.executable, str(PROGRAM), client, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.readers = [
            start_reader(self.run.stdout, self._hear),
            start_reader(self.run.stderr, lambda line: self.errors.append(line.decode())),
        ]

    def _hear(self, line: bytes) -> None:
        self.watch.hear(self.events, Event(*json.loads(line)))

    def leave(self) -> None:
        assert self.run.stdin is not None
        assert self.run.poll() is None, f"{self.name} ended by itself: {''.join(self.errors)}"
        self.run.stdin.write(b"leave\n")
        self.run.stdin.flush()


class CommandMember(MemberRun, ABC):
    """A member that is a command: what it prints says what it reads, and SIGTERM ends it.

    A subclass reads a line in `hear`.
    """

    def __init__(self, name: str, watch: Watch, command: list[str]) -> None:
        super().__init__(name, watch)
        self.errors: list[bytes] = []
        # One pipe for both: a record stays behind the assignment that it came by.
        self.run = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.readers = [start_reader(self.run.stdout, self.hear)]

    @abstractmethod
    def hear(self, line: bytes) -> None:
        """Read a line that the command has printed."""

    def tell(self, what: str, data: list[Any]) -> None:
        """Note what happens now.

        A line is read later than it was written, by however much on a busy machine, and `tarry
        consume` writes none before it has its next partitions.  So what was given up is noted as of
        the last sign of the member before: another one may have it by now.
        """
        stamp_ns = time.monotonic_ns()
        if what == "revoked" and self.events:
            stamp_ns = max(event.stamp_ns for event in self.events)
        self.watch.hear(self.events, Event(stamp_ns, what, data))

    def leave(self) -> None:
        self.run.terminate()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        self.run.wait()
        self.watch.hear_end(self.events, "left")


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Settings as kcat and `tarry` take them."""
    return [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]


# Lines of kcat -G: "% Group g rebalanced (memberid m): assigned: t [0], t [1]", and with
# a cooperative assignor "% Group g rebalanced: incremental revoke of 1 partition(s) (...): t [0]".
KCAT_REBALANCE: Final = re.compile(rb"rebalanced.*?(assigned|revoked|assignment|revoke)\b(.*)")
KCAT_ASSIGNED: Final = (b"assigned", b"assignment")
# Its last words when it has lost every broker: it does not wait for them.
KCAT_GIVES_UP: Final = b": terminating"
RECORD: Final = r"%p %o %s\n"


class KcatMember(CommandMember):
    """`kcat -G`, which commits in its own rhythm and never says what."""

    def __init__(self, name: str, watch: Watch, words: list[str]) -> None:
        address, group, topic, assignor, session_ms, heartbeat_ms = words
        settings = {
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": heartbeat_ms,
            "auto.commit.interval.ms": "100",
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": "200",
            # librdkafka's own threads would write into the middle of a record's line.
            "log_level": "0",
        }
        options = [*as_options(settings), "-u", "-f", RECORD, "-G", group, topic]
        super().__init__(name, watch, ["kcat", "-b", address, *options])

    def hear(self, line: bytes) -> None:
        if line.startswith(b"%"):
            self._hear_message(line)
            return
        partition, offset, value = line.split()
        self.tell("read", [[int(partition), int(offset), value.decode()]])

    def _hear_message(self, line: bytes) -> None:
        self.errors.append(line)
        if KCAT_GIVES_UP in line:
            self.watch.hear_end(self.events, "left")
        found = KCAT_REBALANCE.search(line)
        if found is not None:
            what = "assigned" if found[1] in KCAT_ASSIGNED else "revoked"
            self.tell(what, [int(number) for number in re.findall(rb"\[(\d+)\]", found[2])])


def end_process(run: subprocess.Popen[bytes], readers: list[threading.Thread]) -> None:
    """Kill it if it still runs; nothing of it stays."""
    if run.poll() is None:
        run.kill()
    run.wait()
    for reader in readers:
        reader.join()
    for stream in (run.stdin, run.stdout, run.stderr):
        if stream is not None:
            stream.close()
