"""Kafka's Java members, admin client and tools, driven through `java/groups`, one JVM for many.

The sources are compiled once; the classes are kept in `build/` by a digest of what they come from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import shutil
import subprocess
from typing import Any, Final

from tests.support.interop.client_face import ClientMissing
from tests.support.interop.group_members import (
    WAIT_SECONDS_MAX,
    Event,
    Watch,
    end_process,
)
from tests.support.interop.java_face import JavaError
from tests.support.interop.kafka_server import TOOLS_POM, KafkaUnavailable, class_path
from tests.support.places import BUILD, PEERS
from tests.support.process_lines import start_reader

SOURCES: Final = PEERS / "java" / "groups"

# They live for seconds: compiling them well is not worth the while.
JAVA: Final = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

ASSIGNORS: Final = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


def java_classes() -> str:
    """The class path of the compiled sources and of all jars they need."""
    if shutil.which("javac") is None:
        raise ClientMissing("javac is not installed; Debian has it in default-jdk-headless")
    try:
        jars = class_path(TOOLS_POM)
    except KafkaUnavailable as reason:
        raise ClientMissing(str(reason)) from reason
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(jars.encode())
    for source in sources:
        digest.update(source.read_bytes())
    classes = BUILD / f"java-groups-{digest.hexdigest()[:12]}"
    if not classes.exists():
        unfinished = classes.with_name(f"{classes.name}.{os.getpid()}")
        done = subprocess.run(
            ["javac", "-cp", jars, "-d", str(unfinished), *map(str, sources)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        # Another process may have made them meanwhile.
        with contextlib.suppress(OSError):
            unfinished.rename(classes)
        assert classes.exists(), f"{unfinished} could not be renamed"
    return os.pathsep.join((str(classes), jars))


class JavaGroups:
    """The running program."""

    def __init__(self) -> None:
        self.members: dict[str, JavaMember] = {}
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.errors: list[str] = []
        self.run = subprocess.Popen(
            [*JAVA, "-cp", java_classes(), "Groups"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.readers = [
            start_reader(self.run.stdout, self._hear),
            start_reader(self.run.stderr, lambda line: self.errors.append(line.decode())),
        ]

    def _hear(self, line: bytes) -> None:
        told = json.loads(line)
        if isinstance(told, dict):
            self.answers.put(told)
            return
        member = self.members[told[0]]
        member.watch.hear(member.events, Event(*told[1:]))

    def ask(self, do: str, **fields: Any) -> Any:
        assert self.run.stdin is not None
        self.run.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        self.run.stdin.flush()
        answer = self.answers.get(timeout=WAIT_SECONDS_MAX)
        if "error" in answer:
            raise JavaError(answer["error"])
        return answer["answer"]

    def tool(self, name: str, *words: str) -> str:
        """Run one of Kafka's tools to its end, in this JVM: what it printed."""
        code, printed = self.ask("tool", **{"class": name, "words": words})
        assert code == 0, printed
        text: str = printed
        return text

    def kill(self) -> None:
        """kill -9, and so all members that live in it."""
        self.run.kill()
        self.run.wait()

    def close(self) -> None:
        end_process(self.run, self.readers)


class JavaMember:
    """A member in the JVM; to kill it is to kill the JVM."""

    def __init__(
        self,
        name: str,
        watch: Watch,
        program: JavaGroups,
        words: list[str],
        more_settings: dict[str, str] | None = None,
    ) -> None:
        address, group, topic, assignor, session_ms, heartbeat_ms = words
        self.name = name
        self.watch = watch
        self.program = program
        self.events: list[Event] = []
        # The program outlives a test, names do not.
        self.key = f"{group} {name}"
        program.members[self.key] = self
        settings = {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": "classic",
            "partition.assignment.strategy": ASSIGNORS[assignor],
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": heartbeat_ms,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": "200",
            **(more_settings or {}),
        }
        program.ask("join", member=self.key, topic=topic, settings=settings)

    def leave(self) -> None:
        self.program.ask("leave", member=self.key)

    def kill(self) -> None:
        self.program.kill()
        self.watch.hear_end(self.events, "killed")

    def close(self) -> None:
        if not any(event.what in ("left", "killed") for event in tuple(self.events)):
            self.leave()
