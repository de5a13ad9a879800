"""Rounds of an auditor over a driver without Spark: more of them than a Spark has time for.

    python -m tests.support.spark.small_rounds --rounds 100 --seed 1 DIRECTORY

Each round sends records and starts the driver of `small_driver`, which is killed at a step of
freeze, publish, mark and manifest or at a random moment, or whose broker is.  Then it is started
again until it ends, and a plain consumer and pyarrow account for every record.  With --bootstrap
the broker is one that runs already, such as Apache Kafka, and never dies.

--mistake plants one of `small_mistakes` into each driver.  Not every mistake can be shown by
processes that are killed: what they have written outlives them.  A plan that is not durable is lost
with the page cache only; the simulation of the sink (`sink_world`) loses it.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow.dataset as ds
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S
from tests.support.spark.small_driver import CLEAN, PARTITIONS, REJECTED, SOURCE, is_clean
from tests.support.spark.small_mistakes import MISTAKES

from tarry.client import Admin, Consumer, NewTopic, Producer

ROOT: Final = Path(__file__).resolve().parents[3]

Step = tuple[str, bool, int]

# Each with: behind it or before, and which one of a process.
STEPS: Final[tuple[Step, ...]] = tuple(
    (name, is_behind, nth)
    for name, times in (
        ("NoteEnds", 2),
        ("CreatePlan", 3),
        ("SendRound", 8),
        ("MarkDone", 3),
        ("RemoveFiles", 3),
        ("commit", 3),
        ("publish", 3),
        ("drop", 2),
    )
    for nth in range(1, times + 1)
    for is_behind in (False, True)
)
# Starts of one round; a broker that is away for a moment may end one.
STARTS_MAX: Final = 5
RECORDS_MAX: Final = 300
# Deaths that are drawn for one round: a driver may come to its end before it meets one.
DRAWS_MAX: Final = 4

Record = tuple[int, int, bytes]


class SmallRounds:
    """Rounds of one broker and one query."""

    def __init__(self, directory: Path, seed: int, bootstrap: str = "", mistake: str = "") -> None:
        self.directory = directory
        self._random = random.Random(seed)
        self._broker = None if bootstrap else BrokerProcess(directory)
        self.bootstrap = bootstrap
        self._mistake = mistake
        self._sent = 0
        # How long a run takes, for a random moment in it.
        self._seconds = 2.0
        self.deaths: Counter[str] = Counter()
        # Rounds in which something died before the driver came to its end.
        self.met = 0

    def start(self) -> None:
        if self._broker is not None:
            self._broker.start({"log.retention.ms": "-1"})
            self.bootstrap = self._broker.address
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            topics = [NewTopic(name, PARTITIONS) for name in (SOURCE, CLEAN, REJECTED)]
            for outcome in admin.create_topics(topics):
                assert outcome.error is None, outcome.error

    def close(self) -> None:
        if self._broker is not None:
            self._broker.close()

    def round(self, *, step: Step | None = None, is_finished: bool = True) -> list[str]:
        """Take one round, with a death at `step` or a drawn one; return what is wrong.

        One that is not finished leaves to the next one what its driver did not come to.
        """
        for _ in range(DRAWS_MAX):
            told, status, is_met = self._die(step)
            self.deaths[told if is_met else f"{told}: not met"] += 1
            self.met += is_met
            if is_met or step is not None:
                break
        flaws: list[str] = []
        if status not in (0, -signal.SIGKILL) and told != "broker":
            flaws.append(f"the driver ended by itself, with {status}")
        # Where no broker was away, nothing excuses a driver that ends by itself.
        if is_finished and not self.finish(STARTS_MAX if told == "broker" else 1):
            flaws.append("the driver does not come to its end")
        flaws += self.flaws(is_finished=is_finished)
        return [f"{told}: {flaw}" for flaw in flaws]

    def send(self, count: int | None = None) -> None:
        """Send the records of a round, so many or a drawn number."""
        draw = self._random
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for _ in range(count or draw.randint(1, RECORDS_MAX)):
                producer.send(SOURCE, b"%d" % self._sent, key=b"%d" % draw.randrange(50))
                self._sent += 1

    def _die(self, step: Step | None) -> tuple[str, int, bool]:
        """Send records and let something die over them; tell what, how the driver ended, and
        whether it was still at work."""
        draw = self._random
        # A step that is given is met only by a driver that has enough to do.
        self.send(RECORDS_MAX if step else None)
        kind = "step" if step else draw.choice(("step", "step", "step", "driver", "broker"))
        if kind == "broker" and self._broker is None:
            kind = "driver"
        if kind == "step" and step is None:
            step = draw.choice(STEPS)
        began_s = time.monotonic()
        run = self._start(step)
        is_met = False
        if kind != "step":
            with suppress(subprocess.TimeoutExpired):
                run.wait(draw.uniform(0.2, 1) * self._seconds)
            is_met = run.poll() is None
        ended_s = time.monotonic()
        if kind == "broker":
            assert self._broker is not None
            self._broker.kill()
            self._broker.start()
        elif kind == "driver":
            run.kill()
        status = run.wait(PATIENCE_S)
        if step:
            is_met = status == -signal.SIGKILL
            ended_s = time.monotonic()
        if not is_met:
            self._seconds = ended_s - began_s
        told = f"{'behind' if step[1] else 'before'} {step[0]} {step[2]}" if step else kind
        return told, status, is_met

    def finish(self, starts: int = STARTS_MAX) -> bool:
        """Let the driver come to its end in so many starts; return whether it does."""
        for _ in range(starts):
            began_s = time.monotonic()
            status = self._start(None).wait(PATIENCE_S)
            if status == 0:
                self._seconds = time.monotonic() - began_s
                return True
        return False

    def _start(self, step: Step | None) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "tests.support.spark.small_driver"]
        with (self.directory / "drivers.log").open("ab") as log:
            return subprocess.Popen(
                [*program, self.bootstrap, str(self.directory), json.dumps(step), self._mistake],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    # --- The auditor

    def flaws(self, *, is_finished: bool = True) -> list[str]:
        """Account for every record: in one of two topics, once, and in the archive, once.

        What is not finished has what its driver committed, at least, and at most what it planned.
        """
        found = {name: self._records(name) for name in (SOURCE, CLEAN, REJECTED)}
        values = {name: [value for _, _, value in records] for name, records in found.items()}
        went_in, clean, rejected = values[SOURCE], values[CLEAN], values[REJECTED]
        flaws: list[str] = []
        if sorted(went_in) != sorted(b"%d" % number for number in range(self._sent)):
            flaws.append(f"{len(went_in)} of {self._sent} records are in {SOURCE}")
        committed, planned = (None, None) if is_finished else self._progress()
        least, most = (
            Counter(value for _, _, value in below(found[SOURCE], ends))
            for ends in (committed, planned)
        )
        if not least <= Counter(clean) + Counter(rejected) <= most:
            flaws.append(
                f"{len(went_in)} in, {len(clean)} clean + {len(rejected)} rejected, of "
                f"{least.total()} to {most.total()}"
            )
        if not all(map(is_clean, clean)) or any(map(is_clean, rejected)):
            flaws.append("records are in the wrong topic")
        for name in (SOURCE, CLEAN):
            kept = self._archived(name)
            placed, counted = (None, None) if is_finished else self._rounds(name)
            rows_least, rows_most = (
                Counter(below(found[name], ends)) for ends in (placed, counted)
            )
            if not rows_least <= kept <= rows_most:
                flaws.append(
                    f"the archive has {kept.total()} rows of {len(found[name])} in {name}, of "
                    f"{rows_least.total()} to {rows_most.total()}"
                )
        return flaws

    def _progress(self) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Return up to where the driver has committed, by partition, and planned."""
        log = self.directory / "offsets"
        done = len(list(log.glob("commit-*")))
        ends: list[dict[int, int]] = []
        for number in (done - 1, done):
            batch = log / f"batch-{number}"
            if batch.exists():
                told = json.loads(batch.read_text())
                ends.append({partition: offset for _, partition, offset in told})
            else:
                ends.append(ends[-1] if ends else {})
        return ends[0], ends[1]

    def _rounds(self, topic: str) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Return up to where the archive has a topic by the rounds before the newest one, whose
        files may be on their way, and by that one."""
        manifests = self.directory / "archive" / "_tarry" / "manifests"
        ends: list[dict[int, int]] = [{}, {}]
        for path in sorted(manifests.glob("[0-9]*.json")):
            of_topic = json.loads(path.read_text())["ends"].get(topic, {})
            ends.append({int(partition): end for partition, end in of_topic.items()})
        return ends[-2], ends[-1]

    def _archived(self, topic: str) -> Counter[Record]:
        """Return the rows of a topic as any reader of Parquet files sees them."""
        path = self.directory / "archive"
        if not any(path.glob("topic=*/*.parquet")):
            return Counter()
        table = ds.dataset(str(path), partitioning="hive", exclude_invalid_files=False).to_table(
            columns=["partition", "offset", "value"], filter=ds.field("topic") == topic
        )
        return Counter(tuple(row.values()) for row in table.to_pylist())

    def _records(self, topic: str) -> list[Record]:
        found: list[Record] = []
        with Consumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest") as consumer:
            places = [(topic, index) for index in range(PARTITIONS)]
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            while any(consumer.position(*place) < end for place, end in ends.items()):
                for group in consumer.poll(1.0):
                    found += [
                        (group.partition, record.offset, record.value or b"")
                        for record in group.records
                    ]
        return found


def below(records: list[Record], ends: Mapping[int, int] | None) -> list[Record]:
    """Return the records below these offsets of their partitions; all of them for None."""
    return [one for one in records if ends is None or one[1] < ends.get(one[0], 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--mistake", default="", choices=["", *MISTAKES])
    given = parser.parse_args()
    given.directory.mkdir(parents=True)
    rounds = SmallRounds(given.directory.absolute(), given.seed, given.bootstrap, given.mistake)
    began_s = time.monotonic()
    try:
        rounds.start()
        for number in range(given.rounds):
            flaws = rounds.round()
            for flaw in flaws:
                sys.stdout.write(f"round {number} WRONG: {flaw}\n")
            if flaws:
                sys.exit(1)
            sys.stdout.write(f"round {number} is well, {time.monotonic() - began_s:.0f} s\n")
            sys.stdout.flush()
    finally:
        rounds.close()
        for what, count in sorted(rounds.deaths.items()):
            sys.stdout.write(f"{count} x {what}\n")


if __name__ == "__main__":
    main()
