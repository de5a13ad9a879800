"""Rounds of an auditor: a pipeline that is killed somewhere, finished, and counted.

    python -m tests.support.spark.rounds --rounds 100 --seed 1 --orders 300 DIRECTORY

`tests/spark/test_rounds.py` runs a few of them; many are for somebody who has the time.

A broker gets a day of orders in parts, one for each round.  A round runs the pipeline of
`examples/orders` over what is there and lets something die at a random moment or at one step of
the sink or of the archive: the driver with all its processes, its JVM, the driver's Python
processes, Python workers, the broker.  Or the driver sleeps there (SIGSTOP), a second one, as on
another machine, comes to the end, and the first one goes on.  Then the pipeline is run to its
end, and the auditor of the example, which has none of the pipeline's code, accounts for every
record so far.

`--kafka` takes a node of Apache Kafka for the broker, which dies as well; with `--bootstrap` it
is one that runs already and never dies.  `--cluster` lets a standalone cluster of two workers do
the work, whose executors die.  With `--plain` the pipeline has neither deduplication nor waits,
whose state takes most of the time.  A driver that came to the end of a round lives on, since the
start of a Spark takes longer than a run.  `--death` says what dies, and that it is surely met.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, Protocol

from tests.support.broker_process import BrokerProcess
from tests.support.interop.kafka_server import KafkaServer, free_port
from tests.support.places import ROOT
from tests.support.spark.round_driver import (
    EXECUTOR,
    JVM,
    NO_END,
    PLANNER,
    RUN_SECONDS_MAX,
    WORKER,
    RoundDriver,
    Step,
    kill_some,
    processes_of,
    wait_for,
)
from tests.support.spark.round_program import DONE

from tarry.client import Admin, NewTopic, Producer

EXAMPLE: Final = ROOT / "examples" / "orders"
sys.path.append(str(EXAMPLE))
Day: Any = __import__("day").Day
headers_of: Any = __import__("day").headers_of
Auditor: Any = __import__("audit").Auditor

# Topics and tables that the pipeline reads and writes.
TOPICS: Final = ("orders", "orders.clean", "orders.rejected", "orders.revenue", "orders.unpaid")

SIDES: Final = (False, True)
# Each with: behind it or before, and which one of a micro-batch or of a run.
STEPS: Final[tuple[Step, ...]] = (
    *(
        (name, is_behind, 1)
        for name in ("NoteEnds", "CreatePlan", "SendRound")
        for is_behind in SIDES
    ),
    *((name, is_behind, 1) for name in ("MarkDone", "RemoveFiles") for is_behind in SIDES),
    *(("CommitRound", is_behind, 1) for is_behind in SIDES),
    *(("PublishRound", is_behind, nth) for is_behind in SIDES for nth in (1, 2)),
    ("DropRound", False, 1),
)

# Behind this a death that is asked for comes, some moments later: rows are in their topics, and the
# run has more stages before it, so that it cannot be over by then.
AT_WORK: Final[Step] = ("SendRound", True, 1)

# Processes that die at a random moment.
DRIVER: Final = "driver"
BROKER: Final = "broker"
SLEEP: Final = "sleep"
KINDS: Final = {
    "jvm": JVM,
    "driver's Python processes": PLANNER,
    "Python workers": WORKER,
    "executors": EXECUTOR,
}
# Some of these are idle: their death may go by unseen, and more follow until a stage starts again.
IDLE: Final = ("Python workers", "driver's Python processes")
# So much of the processes of a kind dies.
SHARE: Final = 0.7

# So many checks come before that of the waits.
CHECKS_PLAIN: Final = 7
# A first run takes about so long, with and without the start of a Spark.
START_SECONDS: Final = 15.0
RUN_SECONDS: Final = 15.0
# How often a run is begun again.
ATTEMPTS: Final = 3
AWAY_SECONDS_MAX: Final = 5.0


class Broker(Protocol):
    """Broker that dies and comes back with what it had."""

    @property
    def address(self) -> str: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...


class TarryNode(BrokerProcess):
    """Tarry that keeps records of any time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.texts["log.retention.ms"] = "-1"


class KafkaNode:
    """Node of Apache Kafka that keeps records of any time."""

    def __init__(self, directory: Path) -> None:
        # One that was killed is taken back when its session is over.
        properties = {"log.retention.ms": "-1", "broker.session.timeout.ms": "9000"}
        self._server = KafkaServer(directory / "kafka", free_port(), properties=properties)

    @property
    def address(self) -> str:
        return self._server.address

    def start(self) -> None:
        self._server.start()

    def kill(self) -> None:
        assert self._server.process is not None
        self._server.process.kill()
        self._server.process.wait()
        self._server.process = None

    def close(self) -> None:
        if self._server.process is not None:
            self.kill()


class Rounds:
    """Rounds of one broker and one pipeline."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.directory: Path = given.directory.absolute()
        self._given = given
        self._random = random.Random(given.seed)
        self._day = Day(given.seed, given.orders)
        events = self._day.events
        cuts = sorted(self._random.sample(range(1, len(events)), given.rounds - 1))
        self._parts = [events[one:other] for one, other in pairwise([0, *cuts, len(events)])]
        self._broker: Broker | None = None
        if not given.bootstrap:
            self._broker = (KafkaNode if given.kafka else TarryNode)(self.directory)
        self._bootstrap = given.bootstrap
        self._master = "local[2]"
        self._driver: RoundDriver | None = None
        # How long a run of a Spark that is there takes.
        self._seconds = RUN_SECONDS
        self.deaths: Counter[str] = Counter()
        # Findings of the auditor in the last round.
        self.checks: list[Any] = []

    def run(self) -> bool:
        shutil.copy(EXAMPLE / "order.json", self.directory)
        text = (EXAMPLE / "orders.toml").read_text()
        if self._given.plain:
            text = "".join(one for one in text.splitlines(True) if "deduplicate" not in one)
            text = text.partition("[[wait]]")[0]
        (self.directory / "orders.toml").write_text(text)
        with ExitStack() as held:
            if self._broker is not None:
                held.callback(self._broker.close)
                self._broker.start()
                self._bootstrap = self._broker.address
            if self._given.cluster:
                from tests.support.spark.standalone import standalone_cluster

                self._master = held.enter_context(standalone_cluster(self.directory, 2))
            held.callback(self._end_driver)
            with Admin(bootstrap_servers=self._bootstrap) as admin:
                # A node that runs already may not keep records of that day.
                configs = {"retention.ms": "-1"}
                names = ("orders",) if self._broker is not None else TOPICS
                admin.create_topics([NewTopic(name, 2, configs=configs) for name in names])
            return all(self._round(number) for number in range(len(self._parts)))

    def _round(self, number: int) -> bool:
        began_s = time.monotonic()
        part = self._parts[number]
        with Producer(bootstrap_servers=self._bootstrap, linger_ms=20) as producer:
            for place, event in enumerate(part, sum(map(len, self._parts[:number]))):
                headers = headers_of(place)
                producer.send(
                    "orders", event.value, key=event.key, timestamp=event.at_ms, headers=headers
                )
        told, is_met, status = self._disturbed(number)
        self.deaths[told if is_met else f"{told} (not met)"] += 1
        if NO_END in status:
            tell(f"round {number} WRONG: {told}: the run came to {status}")
            return False
        for _ in range(ATTEMPTS):
            run_s = time.monotonic()
            is_warm = self._driver is not None
            driver = self._there()
            driver.run()
            last = driver.wait()
            if last == DONE:
                if is_warm:
                    self._seconds = 0.7 * self._seconds + 0.3 * (time.monotonic() - run_s)
                break
            self._end_driver()
        else:
            tell(f"round {number}: the pipeline does not come to its end: {last}")
            return False
        ended_s = time.monotonic()
        told = f"{told}: {'' if is_met else 'not met, '}{status}"
        is_well = self._count(number, told)
        tell(
            f"round {number} took {ended_s - began_s:.1f} s and {time.monotonic() - ended_s:.1f} s"
        )
        return is_well

    def _disturbed(self, number: int) -> tuple[str, bool, str]:
        """Run the pipeline while something dies or sleeps; return what, whether that was met, and
        how the run ended."""
        draw = self._random
        # So that a seed draws the same, whatever was met.
        kind = draw.choice(self._victims()) if draw.random() < 0.5 and number > 0 else ""
        step: Step | None = draw.choice(STEPS)
        sleeps = draw.random() < 0.2
        share = draw.uniform(0.05, 0.95)
        if self._given.only:
            wanted = self._given.only
            kind = wanted if wanted in self._victims() else ""
            sleeps = wanted == SLEEP
        asked = self._given.death[number % len(self._given.death)] if self._given.death else ""
        if asked:
            kind, sleeps, step = "" if asked == SLEEP else asked, asked == SLEEP, AT_WORK
        elif kind:
            step = None
        flag = self.directory / "trap-0"
        flag.unlink(missing_ok=True)
        seconds = share * (self._seconds + (START_SECONDS if self._driver is None else 0))
        driver = self._there()
        at = kind or f"{'behind' if step and step[1] else 'before'} {step and step[0]}"
        if kind and asked:
            return at, *self._let_surely_die(driver, kind, flag)
        if sleeps and kind in ("", DRIVER):
            told = f"driver sleeps {'somewhere' if kind else at}"
            return told, *self._let_sleep(driver, step, flag, seconds)
        driver.run(step)
        is_met = True
        if kind:
            is_met = self._kill(driver, kind, seconds)
        status = driver.wait()
        if status != DONE:
            self._end_driver()
        return at, is_met if kind else flag.exists(), status

    def _let_surely_die(self, driver: RoundDriver, kind: str, flag: Path) -> tuple[bool, str]:
        """Let something die while the run is at work, and go on until that is felt."""
        driver.run(AT_WORK, "tell")
        wait_for(RUN_SECONDS_MAX, flag, driver)
        is_met = flag.exists() and self._kill(driver, kind, 0)
        while is_met and kind in IDLE and not driver.has_started_again():
            is_met = self._kill(driver, kind, 0.1)
        status = driver.wait()
        if status != DONE:
            self._end_driver()
        return is_met, status

    def _victims(self) -> tuple[str, ...]:
        kinds = [kind for kind in KINDS if self._given.cluster or KINDS[kind] != EXECUTOR]
        return (DRIVER, *kinds, *((BROKER,) if self._broker is not None else ()))

    def _kill(self, driver: RoundDriver, kind: str, seconds: float) -> bool:
        """Kill something at a moment of a run, which may have ended before; return whether there
        was something to kill."""
        is_over = driver.is_over(seconds)
        if kind == BROKER:
            assert self._broker is not None
            self._broker.kill()
            time.sleep(self._random.uniform(0.1, AWAY_SECONDS_MAX))
            self._broker.start()
            return not is_over
        if is_over:
            return False
        if kind == DRIVER:
            driver.die()
            return True
        # Executors are below the daemons of the cluster, which are below this process.
        above = [os.getpid()] if self._given.cluster else [driver.pid]
        while not (found := processes_of(above, KINDS[kind])):
            # There will be some.
            if driver.is_over(0.1):
                return False
        some = [pid for pid in found if kind == "jvm" or self._random.random() < SHARE]
        return kill_some(some or found[:1]) > 0

    def _let_sleep(
        self, driver: RoundDriver, step: Step | None, flag: Path, seconds: float
    ) -> tuple[bool, str]:
        """Let the driver sleep, another one come to the end, and the first one go on."""
        driver.run(step, "stop", is_alone=False)
        if step is None:
            is_met = not driver.is_over(seconds)
            driver.send(signal.SIGSTOP)
        else:
            # It sleeps at the step, or comes to its end.
            wait_for(10 * (self._seconds + START_SECONDS), flag, driver)
            is_met = flag.exists()
        self._driver = second = RoundDriver(self.directory, self._bootstrap, self._master)
        try:
            second.run(is_alone=False)
            status = second.wait()
            if status != DONE:
                self._end_driver()
            driver.send(signal.SIGCONT)
            # It may find that another one was there.
            return is_met, f"{driver.wait()}, the second one: {status}"
        finally:
            driver.kill()

    # --- The auditor

    def _count(self, number: int, told: str) -> bool:
        is_last = number == len(self._parts) - 1
        archive = self.directory / "lake" / "orders"
        made = Auditor(self._bootstrap, archive).checks(self._day.truth)
        left_out: tuple[str, ...] = ("No clean event",) if self._given.plain else ()
        if self._given.plain or not is_last:
            # The truth is that of a whole day.
            left_out += ("Each rule",)
        self.checks = checks = [
            check
            for check in islice(made, CHECKS_PLAIN if self._given.plain else None)
            if not check.sentence.startswith(left_out)
        ]
        wrong = [f"{check.sentence}: {check.found}" for check in checks if not check.is_well]
        tell(f"round {number}, {told}, {len(self._parts[number])} events, {checks[0].found}")
        for sentence in wrong:
            tell(f"round {number} WRONG: {sentence}")
        return not wrong

    # --- The driver

    def _there(self) -> RoundDriver:
        """Return the driver that lives, or a new one."""
        if self._driver is None:
            self._driver = RoundDriver(self.directory, self._bootstrap, self._master)
        return self._driver

    def _end_driver(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver = None


def tell(sentence: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")
    sys.stdout.flush()


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", type=int, default=300)
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--kafka", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--plain", action="store_true")
    kinds = (DRIVER, BROKER, SLEEP, *KINDS)
    parser.add_argument("--only", choices=kinds, help="what dies in each round, or sleeps")
    text = "what dies in a round while it is at work, or sleeps; several come in turn"
    parser.add_argument("--death", choices=kinds, action="append", help=text)
    return parser.parse_args(arguments)


def main() -> None:
    given = read_arguments(sys.argv[1:])
    given.directory.mkdir(parents=True)
    rounds = Rounds(given)
    is_well = rounds.run()
    for what, count in sorted(rounds.deaths.items()):
        tell(f"{count} x {what}")
    tell("all is well" if is_well else "something is WRONG")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
