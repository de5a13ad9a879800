"""Program: members that commit synchronously while etcd is away, frozen, killed and cut off.

    python -m tests.support.cluster.etcd_hardships [ROUNDS] [--short] [--clients C,C] [--faults F,F]

Three brokers and a real etcd behind proxies; a group of three members of each client, all with the
same coordinator, and a load on six partitions.  A round: etcd is killed and comes back after 60 s;
it is frozen for 20 s; it is killed and started at once; the coordinator is cut off from etcd alone
for 20 s.  `--short`: 8, 12, 0 and 12 s.  A line a fault: by client the longest commit and the
longest time without one, how many were refused, and which members stay away.  The directory stays;
`--debug` has librdkafka write there what it does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.client_load import LibrdkafkaTopic
from tests.support.cluster.replicated import EVERY_BROKER, create, wait_until_in_sync
from tests.support.interop.group_members import (
    PROGRAM,
    Event,
    Member,
    MemberRun,
    Watch,
)
from tests.support.interop.java_groups import JavaGroups, JavaMember
from tests.support.interop.moving_groups import coordinator_of, is_coordinated
from tests.support.process_lines import start_reader

SETTINGS: Final = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1500",
    "auto.leader.rebalance.enable": "false",
}
CLIENTS: Final = ("confluent-kafka", "java", "aiokafka")
MEMBERS: Final = 3
SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 1_000
TOPIC: Final = "librdkafka"
# A member that has committed nothing for so long after all is well again stays away.
AWAY_S: Final = 60


class LoggedMember(MemberRun):
    """A member of `member_program.py` whose standard error goes to a file."""

    def __init__(self, name: str, watch: Watch, client: str, words: list[str], log: Path) -> None:
        super().__init__(name, watch)
        with log.open("wb") as stderr:
            self.run = subprocess.Popen(
                [sys.executable, str(PROGRAM), client, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(os.environ),
            )
        self.readers = [start_reader(self.run.stdout, self._hear)]

    def _hear(self, line: bytes) -> None:
        self.watch.hear(self.events, Event(*json.loads(line)))

    def leave(self) -> None:
        assert self.run.stdin is not None
        self.run.stdin.write(b"leave\n")
        self.run.stdin.flush()


# Characters of a refusal's reason that are told.
REASON_MAX: Final = 200


class Commits:
    """What a member told of its commits since a moment."""

    def __init__(self, member: Member, since_ns: int) -> None:
        self.longest_s = 0.0
        self.longest_without_s = 0.0
        self.is_under_way = False
        self.refusals: Counter[str] = Counter()
        self.last_ns = since_ns
        begun_ns = 0
        for event in tuple(member.events):
            if event.what == "committing":
                begun_ns = event.stamp_ns
                self.is_under_way = True
            elif event.what in ("committed", "refused"):
                self.is_under_way = False
                if event.stamp_ns < since_ns:
                    continue
                self.longest_s = max(self.longest_s, (event.stamp_ns - begun_ns) / 1e9)
                if event.what == "refused":
                    self.refusals[str(event.data)[:REASON_MAX]] += 1
                    continue
                gap = (event.stamp_ns - self.last_ns) / 1e9
                self.longest_without_s = max(self.longest_without_s, gap)
                self.last_ns = event.stamp_ns


class Hardships:
    """The cluster, its members and its load."""

    def __init__(
        self, directory: Path, clients: Sequence[str], settings: Mapping[str, str] | None = None
    ) -> None:
        self.cluster = BrokerCluster(directory, {**SETTINGS, **(settings or {})}, has_proxies=True)
        self.cluster.start()
        self.cluster.wait_until_serving(1, EVERY_BROKER)
        create(self.cluster, TOPIC)
        self.watch = Watch()
        self.java = JavaGroups() if "java" in clients else None
        self.members: dict[str, list[Member]] = {}
        self.groups: dict[str, str] = {}
        self.coordinator = -1
        for client in clients:
            group = self._next_group(client)
            self.groups[client] = group
            words = [self.cluster.addresses, group, TOPIC, "range"]
            words += [str(SESSION_MS), str(HEARTBEAT_MS)]
            for number in range(MEMBERS):
                name = f"{client}-{number}"
                if client == "java":
                    assert self.java is not None
                    made: Member = JavaMember(name, self.watch, self.java, words)
                else:
                    log = directory / f"{name}.log"
                    made = LoggedMember(name, self.watch, client, words, log)
                self.members.setdefault(client, []).append(made)
        self.load = LibrdkafkaTopic(self.cluster.addresses)
        self.load.start()
        self.wait_for_all(time.monotonic_ns())
        wait_until_in_sync(self.cluster, "__consumer_offsets")

    def _next_group(self, client: str) -> str:
        for number in range(1_000):
            group = f"{client}-{number}"
            wait_until(lambda group=group: is_coordinated(self.cluster, 1, group), group)
            found = coordinator_of(self.cluster, 1, group)
            if self.coordinator in (-1, found):
                self.coordinator = found
                return group
        raise AssertionError("no group with this coordinator")

    def every_member(self) -> list[Member]:
        return [member for members in self.members.values() for member in members]

    def find_coordinator(self) -> int:
        group = next(iter(self.groups.values()))
        for asked in EVERY_BROKER:
            if (found := coordinator_of(self.cluster, asked, group)) >= 0:
                return found
        return -1

    def wait_for_all(self, since_ns: int) -> list[str]:
        """Wait until each member has committed since; the names of those that stay away."""

        def missing() -> list[str]:
            return [
                each.name
                for each in self.every_member()
                if Commits(each, since_ns).last_ns == since_ns
            ]

        end = time.monotonic() + AWAY_S
        while (names := missing()) and time.monotonic() < end:
            with self.watch.changed:
                self.watch.changed.wait(0.1)
        return names

    def close(self) -> None:
        self.load.is_over = True
        for member in self.every_member():
            if isinstance(member, LoggedMember):
                member.close()
        if self.java is not None:
            self.java.kill()
            self.java.close()
        self.cluster.close()


def away(run: Hardships, seconds: float) -> None:
    with run.cluster.etcd.away():
        time.sleep(seconds)


def frozen(run: Hardships, seconds: float) -> None:
    run.cluster.etcd.pause()
    time.sleep(seconds)
    run.cluster.etcd.go_on()


def cut(run: Hardships, seconds: float) -> None:
    proxy = run.cluster.stores[run.find_coordinator()]
    proxy.cut()
    time.sleep(seconds)
    proxy.heal()


FAULTS: Final[dict[str, tuple[Callable[[Hardships, float], None], float, float]]] = {
    "away": (away, 60, 8),
    "frozen": (frozen, 20, 12),
    "killed": (away, 0, 0),
    "cut": (cut, 20, 12),
}


def play_round(run: Hardships, faults: list[str], *, is_short: bool) -> bool:
    """Play a round; whether every member came back."""
    for name in faults:
        do, long_s, short_s = FAULTS[name]
        began_ns = time.monotonic_ns()
        do(run, short_s if is_short else long_s)
        healed_ns = time.monotonic_ns()
        missing = run.wait_for_all(healed_ns)
        back_s = (time.monotonic_ns() - healed_ns) / 1e9
        figures = []
        for client, members in run.members.items():
            told = [Commits(each, began_ns) for each in members]
            figures.append(
                f"{client} {max(each.longest_s for each in told):.1f} "
                f"{max(each.longest_without_s for each in told):.1f} "
                f"{sum(each.refusals.total() for each in told)}"
            )
            reasons = sum((each.refusals for each in told), Counter[str]())
            figures += [f"{count} times {reason}" for reason, count in reasons.most_common(3)]
        sys.stdout.write(
            f"{name}: longest commit s, longest without s, refused: {'; '.join(figures)}; "
            f"all back after {back_s:.1f} s\n"
        )
        sys.stdout.flush()
        if missing:
            under_way = [
                each.name
                for each in run.every_member()
                if each.name in missing and Commits(each, began_ns).is_under_way
            ]
            sys.stdout.write(f"AWAY after {name}: {missing}; commits under way: {under_way}\n")
            sys.stdout.flush()
            return False
        wait_until_in_sync(run.cluster, "__consumer_offsets")
        time.sleep(2)
    return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--faults", default=",".join(FAULTS))
    words = parser.parse_args()
    if words.debug:
        os.environ["TARRY_TEST_LIBRDKAFKA_DEBUG"] = "cgrp,protocol,broker"
    directory = Path(tempfile.mkdtemp(prefix="hardships-"))
    sys.stdout.write(f"in {directory}\n")
    run = Hardships(directory, words.clients.split(","))
    try:
        for number in range(1, words.rounds + 1):
            sys.stdout.write(f"round {number}\n")
            if not play_round(run, words.faults.split(","), is_short=words.short):
                break
    finally:
        run.close()


if __name__ == "__main__":
    main()
