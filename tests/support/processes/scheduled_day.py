"""A day of scheduled records in minutes, on three real brokers, and an audit of it.

    python -m tests.support.processes.scheduled_day [--minutes 15] [--seed 1] [--brokers 3]

Clients of seven kinds schedule records by timestamp and by headers, cancel, replace and move them,
while brokers are killed, drained, stopped, filled up and set to other times.  Then an auditor reads
all topics and accounts for each record and each answer.  Prints counts, how late records came, and
each violation with where to look; ends with 1 if there is any.  What was written stays in the
directory then, with the account, which `--judge FILE` judges again.  The first draws of a seed are
the same each time; what comes of them is not.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from tests.support.audit.account import Account, now_ms
from tests.support.audit.actors import STAMPED, TOPICS, Actor, Play, play_all
from tests.support.audit.calendars import Calendars
from tests.support.audit.hardships import ETCD, FILL, KINDS, Hardships
from tests.support.audit.report import judge_all, report_lines
from tests.support.audit.senders import CLIENTS
from tests.support.audit.stages import DayStage
from tests.support.audit.watching import (
    Watcher,
    list_all,
    read_all,
    wait_until_nothing_is_due,
)
from tests.support.interop.client_face import ClientMissing
from tests.support.interop.java_face import JavaProgram
from tests.support.processes.hostile_requests import say

from tarry.client import Admin

# The longest that a hardship is held, and that a record of the day waits.
LONGEST_S: Final = 20.0
DUE_S_MAX: Final = 45.0
LOAD_EVERY_S: Final = 5.0


class Loads(threading.Thread):
    """The machine's load average, looked at now and then."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.found: list[float] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.is_set():
            self.found.append(os.getloadavg()[0])
            self.is_over.wait(LOAD_EVERY_S)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=3)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--actors", type=int, default=2, help="of each kind of client")
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between two steps")
    for kind in KINDS:
        parser.add_argument(f"--no-{kind.replace(' ', '-')}", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the directory in any case")
    parser.add_argument("--judge", type=Path, metavar="FILE", help="judge an account again")
    return parser.parse_args()


def kinds_of(asked: argparse.Namespace, stage: DayStage) -> list[str]:
    kinds = [kind for kind in KINDS if not getattr(asked, f"no_{kind.replace(' ', '_')}")]
    if stage.no_disks and FILL in kinds:
        say(f"no disk is filled: {stage.no_disks}")
        kinds.remove(FILL)
    if stage.cluster is None and ETCD in kinds:
        kinds.remove(ETCD)
    return kinds


def make_actors(play: Play, clients: list[str], count: int) -> list[Actor]:
    """Make the actors; a client that is not there is named and left out."""
    made: list[Actor] = []
    program: JavaProgram | None = None
    for client in clients:
        # One program of Java answers one question at a time, and a run of kcat is a process.
        number = 1 if client in ("java", "kcat") else count
        try:
            if client == "java":
                program = JavaProgram()
            made += [Actor(play, client, each, program) for each in range(number)]
        except ClientMissing as reason:
            say(f"{client} is left out: {reason}")
    return made


def live(asked: argparse.Namespace, stage: DayStage, account: Account) -> None:
    """Live through the day, and put everything right again."""
    seconds = asked.minutes * 60
    stage.note_leaders(account)
    watcher = Watcher(account, stage.addresses, stage.places)
    play = Play(
        account,
        stage.addresses,
        asked.seed,
        asked.partitions,
        int(min(DUE_S_MAX, max(4.0, seconds / 5)) * 1_000),
        asked.pause,
        threading.Event(),
    )
    actors = make_actors(play, asked.clients.split(","), asked.actors)
    longest_s = min(LONGEST_S, seconds / 6)
    kinds = kinds_of(asked, stage)
    hardships = Hardships(stage, account, asked.seed, kinds, longest_s)
    account.began_ms = now_ms()
    watcher.start()
    hardships.start()
    until_s = time.monotonic() + seconds
    try:
        play_all(play, actors, until_s)
    finally:
        hardships.end()
    stage.settle()
    # All that waits for the day is due by then.
    last_ms = max([each.due_ms for each in account.entrusted.values() if not is_far(each.due_ms)])
    time.sleep(max(0, last_ms - now_ms()) / 1_000)
    with Admin(bootstrap_servers=stage.addresses) as admin:
        wait_until_nothing_is_due(admin, account, TOPICS)
    watcher.end()


def is_far(due_ms: int) -> bool:
    return due_ms > now_ms() + 3_600_000


def audit(stage: DayStage, account: Account) -> None:
    """Read everything that is there."""
    with Admin(bootstrap_servers=stage.addresses) as admin:
        account.listed = list_all(admin, TOPICS)
    account.found = read_all(stage.addresses, stage.places)
    account.read_ms = now_ms()
    # What was due by then had to be read.
    account.listed = [each for each in account.listed if each.due_ms > account.read_ms]
    stage.note_history(account)
    for record in account.found:
        place = (*record.place, record.offset)
        record.arrived_ms = account.seen.get(place, ("", -1))[1]
    stage.check_logs(account)


def tell(account: Account, loads: list[float]) -> int:
    """Judge and print; the exit code."""
    violations = judge_all(account)
    for line in report_lines(account, violations, loads):
        say(line)
    return 1 if violations else 0


def main() -> int:
    asked = arguments()
    if asked.judge is not None:
        with asked.judge.open("rb") as file:
            return tell(*pickle.load(file))
    directory = Path(tempfile.mkdtemp(prefix="scheduled-day-"))
    say(f"{asked.minutes:g} minutes with seed {asked.seed} on {asked.brokers} brokers: {directory}")
    account = Account(Calendars(range(1, asked.brokers + 1)), frozenset([STAMPED]))
    stage = DayStage(directory, asked.brokers, has_disks=not asked.no_fill)
    loads = Loads()
    code = 1
    try:
        loads.start()
        stage.open(asked.partitions)
        live(asked, stage, account)
        audit(stage, account)
        loads.is_over.set()
        with (directory / "account").open("wb") as file:
            pickle.dump((account, loads.found), file)
        code = tell(account, loads.found)
    finally:
        if code or asked.keep:
            for broker_id in stage.disks:
                # The disks go with their mounts.
                own = directory / f"broker-{broker_id}"
                for broker in stage.brokers.values():
                    broker.close()
                shutil.copytree(own / "data", own / "data-kept", ignore=_ballast)
        stage.close()
        if code or asked.keep:
            say(f"what was written stays in {directory}; judge it again by --judge and its account")
        else:
            shutil.rmtree(directory)
    return code


def _ballast(_: str, names: list[str]) -> list[str]:
    return [each for each in names if each == "ballast"]


if __name__ == "__main__":
    sys.exit(main())
