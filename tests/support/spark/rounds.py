"""Rounds of an auditor: a pipeline that is killed somewhere, finished, and counted; by hand.

    python -m tests.support.spark.rounds --rounds 10 --seed 1 --orders 300 DIRECTORY

A broker gets a day of orders in parts, one for each round.  A round starts the pipeline of
`examples/orders` over what is there and lets something die: the driver with all its processes, its
JVM, Python workers or the broker at a random moment, or the driver at one step of the sink or of
the archive.  Then the pipeline is run to its end, and the auditor of the example, which has none of
the pipeline's code, accounts for every record so far.  With --bootstrap the broker is one that runs
already, such as Apache Kafka, and never dies.  With --plain the pipeline has neither deduplication
nor waits, whose state takes most of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

from tests.support.broker_process import BrokerProcess

from tarry.client import Admin, NewTopic, Producer

ROOT: Final = Path(__file__).resolve().parents[3]
EXAMPLE: Final = ROOT / "examples" / "orders"
sys.path.append(str(EXAMPLE))
Day: Any = __import__("day").Day
Auditor: Any = __import__("audit").Auditor

# Each with: behind it or before, and which one of a micro-batch or of a run.
STEPS: Final = (
    *(("CreatePlan", is_behind, 1) for is_behind in (False, True)),
    *(("SendRound", is_behind, 1) for is_behind in (False, True)),
    *(("MarkDone", is_behind, 1) for is_behind in (False, True)),
    *(("RemoveFiles", is_behind, 1) for is_behind in (False, True)),
    *(("CommitRound", is_behind, 1) for is_behind in (False, True)),
    *(("PublishRound", is_behind, nth) for is_behind in (False, True) for nth in (1, 2)),
    ("DropRound", False, 1),
)
# What dies at a random moment.
VICTIMS: Final = ("driver", "jvm", "workers", "broker")
# So many checks come before that of the waits.
CHECKS_PLAIN: Final = 6
# A first run takes about so long.
RUN_SECONDS: Final = 30.0
RUN_SECONDS_MAX: Final = 900


class Rounds:
    """Rounds of one broker and one pipeline."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.directory = given.directory.absolute()
        self._random = random.Random(given.seed)
        self._is_plain = given.plain
        self._day = Day(given.seed, given.orders)
        events = self._day.events
        cuts = sorted(self._random.sample(range(1, len(events)), given.rounds - 1))
        self._parts = [events[one:other] for one, other in pairwise([0, *cuts, len(events)])]
        self._broker = BrokerProcess(self.directory) if not given.bootstrap else None
        self._bootstrap = given.bootstrap
        self._seconds = RUN_SECONDS
        self.deaths: Counter[str] = Counter()

    def run(self) -> bool:
        shutil.copy(EXAMPLE / "order.json", self.directory)
        text = (EXAMPLE / "orders.toml").read_text()
        if self._is_plain:
            text = "".join(one for one in text.splitlines(True) if "deduplicate" not in one)
            text = text.partition("[[wait]]")[0]
        (self.directory / "orders.toml").write_text(text)
        if self._broker is not None:
            self._broker.start({"log.retention.ms": "-1"})
            self._bootstrap = self._broker.address
        try:
            with Admin(bootstrap_servers=self._bootstrap) as admin:
                admin.create_topics([NewTopic("orders", 2)])
            return all(self._round(number) for number in range(len(self._parts)))
        finally:
            if self._broker is not None:
                self._broker.close()

    def _round(self, number: int) -> bool:
        part = self._parts[number]
        with Producer(bootstrap_servers=self._bootstrap, linger_ms=20) as producer:
            for event in part:
                producer.send("orders", event.value, key=event.key, timestamp=event.at_ms)
        step, victim = None, ""
        if self._random.random() < 0.5 and number > 0:
            victim = self._random.choice(VICTIMS if self._broker is not None else VICTIMS[:-1])
        else:
            step = self._random.choice(STEPS)
        told = victim or f"{'behind' if step[1] else 'before'} {step[0]} {step[2]}"
        flag = self.directory / "trap-0"
        flag.unlink(missing_ok=True)
        first = self._start(step)
        if victim:
            self._kill(first, victim)
        status = first.wait(RUN_SECONDS_MAX)
        is_hit = flag.exists() or bool(victim)
        self.deaths[told if is_hit else f"{told} (not met)"] += 1
        began_s = time.monotonic()
        attempts = 0
        while (last := self._start(None).wait(RUN_SECONDS_MAX)) != 0:
            attempts += 1
            if attempts == 3:
                tell(f"round {number}: the pipeline does not come to its end: {last}")
                return False
        self._seconds = time.monotonic() - began_s
        return self._count(number, f"{told}: {'' if is_hit else 'not met, '}status {status}")

    def _count(self, number: int, told: str) -> bool:
        is_last = number == len(self._parts) - 1
        archive = self.directory / "lake" / "orders"
        made = Auditor(self._bootstrap, archive).checks(self._day.truth)
        left_out: tuple[str, ...] = ("No clean event",) if self._is_plain else ()
        if self._is_plain or not is_last:
            # The truth is that of a whole day.
            left_out += ("Each rule",)
        checks = [
            check
            for check in islice(made, CHECKS_PLAIN if self._is_plain else None)
            if not check.sentence.startswith(left_out)
        ]
        wrong = [f"{check.sentence}: {check.found}" for check in checks if not check.is_well]
        tell(f"round {number}, {told}, {len(self._parts[number])} events, {checks[0].found}")
        for sentence in wrong:
            tell(f"round {number} WRONG: {sentence}")
        return not wrong

    # --- Processes

    def _start(self, step: tuple[str, bool, int] | None) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "tests.support.spark.round_program"]
        words = [str(self.directory / "orders.toml"), str(self.directory), json.dumps(step)]
        with (self.directory / "runs.log").open("ab") as log:
            return subprocess.Popen(
                [*program, *words],
                cwd=ROOT,
                env={
                    **os.environ,
                    "TARRY_BOOTSTRAP_SERVERS": self._bootstrap,
                    "SPARK_LOCAL_DIRS": str(self.directory / "spark"),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _kill(self, run: subprocess.Popen[bytes], victim: str) -> None:
        """Kill something at a random moment of a run, which may have ended before."""
        with suppress(subprocess.TimeoutExpired):
            run.wait(self._random.uniform(0.15, 0.95) * self._seconds)
        if victim == "broker":
            assert self._broker is not None
            self._broker.kill()
            time.sleep(self._random.uniform(0.1, 5))
            self._broker.start()
            return
        if run.poll() is not None:
            return
        if victim == "driver":
            os.killpg(run.pid, signal.SIGKILL)
            return
        for pid in self._of(run.pid, "java" if victim == "jvm" else "python"):
            # All but the driver itself.
            if pid != run.pid and (victim == "jvm" or self._random.random() < 0.7):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _of(self, group: int, name: str) -> list[int]:
        """Return the processes of a group whose program has such a name."""
        found = []
        for path in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                pid = int(path.name)
                if os.getpgid(pid) == group and (path / "comm").read_text().startswith(name):
                    found.append(pid)
        return sorted(found)


def tell(sentence: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", type=int, default=300)
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    given.directory.mkdir(parents=True)
    rounds = Rounds(given)
    is_well = rounds.run()
    for what, count in sorted(rounds.deaths.items()):
        tell(f"{count} x {what}")
    tell("all is well" if is_well else "something is WRONG")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
