"""Program: applications of others on Tarry and on Apache Kafka, the broker killed under them.

python -m tests.support.applications.table [--on tarry|kafka] [NAME ...]    all if none is named

Each is given 1,500 numbered records in three parts.  The broker is killed (kill -9) and started
again when the first part has passed, and once more while the second one passes.  What the
application has written in the end is compared with what was sent.  The program prints the rows of
the table of docs/moving-from-kafka.md; an application takes 10 to 90 seconds on each broker.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.applications.catalogue import APPLICATIONS, ApplicationMissing, Listed, Place
from tests.support.interop.applications import Application, Traffic, read_until
from tests.support.interop.group_broker import GroupBroker, KafkaBroker, TarryBroker

BROKERS: Final = {"tarry": TarryBroker, "kafka": KafkaBroker}

# An application that has not passed a part on by then has failed.
PART_SECONDS_MAX: Final = 240


class TooLate(Exception):
    """The application did not pass a part on in its time."""


class Supervised(Application):
    """An application that is started again when it ends, as by a service manager."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.command = list(command)
        self.environment = {**os.environ, **environment}
        self.restarts = 0
        self.log = log
        self.end = 0.0
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.log.parent,
            )

    def give_time(self) -> None:
        self.end = time.monotonic() + PART_SECONDS_MAX

    def assert_alive(self) -> None:
        """Start it again if it has ended.  Raises TooLate when its time is over."""
        if time.monotonic() > self.end:
            raise TooLate(f"not all passed within {PART_SECONDS_MAX} s; its log is {self.log}")
        if self.process.poll() is not None:
            self.restarts += 1
            self._start()


def passed(application: Supervised, traffic: Traffic, target: str) -> dict[str, list[str]]:
    """What has come out, once all is there that was sent."""
    application.give_time()
    return read_until(traffic.broker.address, target, traffic.is_all_in, application)


def run_one(listed: Listed, broker: GroupBroker, directory: Path) -> str:
    """Run one application over two kills: its result in a few words."""
    stem = listed.name.split()[0].lower()
    place = Place(broker.address, f"{stem}-in", f"{stem}-out", directory / stem)
    place.directory.mkdir(parents=True)
    try:
        start = listed.start(place)
    except ApplicationMissing as reason:
        return f"not here: {reason}"
    traffic = Traffic(broker, place.source, place.target)
    application = Supervised(start.command, place.directory / "log", start.environment)
    try:
        traffic.write(place.source)
        passed(application, traffic, place.target)
        traffic.kill_broker()
        traffic.write(place.source)
        traffic.kill_broker()
        passed(application, traffic, place.target)
        traffic.write(place.source)
        found = passed(application, traffic, place.target)
    except TooLate as late:
        return f"FAILED: {late}"
    finally:
        application.close()
    return result_of(found, traffic.sent, application.restarts)


def result_of(found: dict[str, list[str]], sent: int, restarts: int) -> str:
    values = [value for of_key in found.values() for value in of_key]
    doubles = len(values) - len(set(values))
    words = [f"{len(set(values)):,} of {sent:,}"]
    words.append(f"{doubles} twice" if doubles else "each once")
    if restarts:
        words.append(f"ended with the broker and was started again {restarts} times")
    return ", ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--on", choices=BROKERS, action="append")
    arguments = parser.parse_args()
    names = [name.lower() for name in arguments.names]
    chosen = [
        one
        for one in APPLICATIONS
        if not names or any(one.name.lower().startswith(name) for name in names)
    ]
    root = Path(tempfile.mkdtemp(prefix="applications-"))
    sys.stderr.write(f"logs are in {root}\n")
    results: dict[str, dict[str, str]] = {one.name: {} for one in chosen}
    for kind in arguments.on or BROKERS:
        directory = root / kind
        directory.mkdir()
        broker = BROKERS[kind](directory)
        try:
            for one in chosen:
                began = time.monotonic()
                results[one.name][kind] = run_one(one, broker, directory / "applications")
                lasted_s = time.monotonic() - began
                sys.stderr.write(
                    f"{one.name} on {kind}: {results[one.name][kind]} ({lasted_s:.0f} s)\n"
                )
        finally:
            broker.close()
    for one in chosen:
        told = " | ".join(results[one.name].values())
        sys.stdout.write(f"| {one.name} {one.version} | {one.what} | {told} |\n")


if __name__ == "__main__":
    main()
