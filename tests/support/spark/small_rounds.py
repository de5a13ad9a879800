"""Rounds of an auditor over a driver without Spark: more of them than a Spark has time for.

    python -m tests.support.spark.small_rounds --rounds 100 --seed 1 DIRECTORY

Each round sends records and starts the driver of `small_driver`, which is killed at a step of
freeze, publish, mark and manifest or at a random moment, or whose broker is.  Then it is started
again until it ends, and a plain consumer and pyarrow account for every record.  With --bootstrap
the broker is one that runs already, such as Apache Kafka, and never dies.
"""

from __future__ import annotations

import argparse
import json
import operator
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow.dataset as ds
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S
from tests.support.spark.small_driver import CLEAN, PARTITIONS, REJECTED, SOURCE, is_clean

from tarry.client import Admin, Consumer, NewTopic, Producer

ROOT: Final = Path(__file__).resolve().parents[3]

Step = tuple[str, bool, int]

# Each with: behind it or before, and which one of a process.
STEPS: Final[tuple[Step, ...]] = tuple(
    (name, is_behind, nth)
    for name, times in (
        ("NoteEnds", 2),
        ("CreatePlan", 3),
        ("SendRound", 6),
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


class SmallRounds:
    """Rounds of one broker and one query."""

    def __init__(self, directory: Path, seed: int, bootstrap: str = "") -> None:
        self.directory = directory
        self._random = random.Random(seed)
        self._broker = None if bootstrap else BrokerProcess(directory)
        self.bootstrap = bootstrap
        self._sent = 0
        # How long a run takes, for a random moment in it.
        self._seconds = 2.0
        self.deaths: Counter[str] = Counter()

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

    def round(self, *, is_finished: bool = True) -> list[str]:
        """Take one round; return what is wrong.

        One that is not finished leaves to the next one what its driver did not come to.
        """
        told = self._die()
        if is_finished and not self.finish():
            return ["the driver does not come to its end"]
        return [f"{told}: {flaw}" for flaw in self.flaws(is_finished=is_finished)]

    def send(self) -> None:
        """Send the records of a round."""
        draw = self._random
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for _ in range(draw.randint(1, 300)):
                producer.send(SOURCE, b"%d" % self._sent, key=b"%d" % draw.randrange(50))
                self._sent += 1

    def _die(self) -> str:
        """Send records, let something die over them, and tell what."""
        draw = self._random
        self.send()
        kind = draw.choice(("step", "step", "step", "driver", "broker"))
        if kind == "broker" and self._broker is None:
            kind = "driver"
        step = draw.choice(STEPS) if kind == "step" else None
        run = self._start(step)
        if kind != "step":
            with suppress(subprocess.TimeoutExpired):
                run.wait(draw.uniform(0.2, 1) * self._seconds)
        if kind == "broker":
            assert self._broker is not None
            self._broker.kill()
            self._broker.start()
        elif kind == "driver":
            run.kill()
        status = run.wait(PATIENCE_S)
        told = f"{'behind' if step[1] else 'before'} {step[0]} {step[2]}" if step else kind
        self.deaths[told if status else f"{told}: not met"] += 1
        return told

    def finish(self) -> bool:
        """Let the driver come to its end; return whether it does."""
        for _ in range(STARTS_MAX):
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
                [*program, self.bootstrap, str(self.directory), json.dumps(step)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    # --- The auditor

    def flaws(self, *, is_finished: bool = True) -> list[str]:
        """Account for every record: in one of two topics, once, and in the archive, once.

        What is not finished may lack records, and has none twice.
        """
        found = {name: self._records(name) for name in (SOURCE, CLEAN, REJECTED)}
        values = {name: [value for _, _, value in records] for name, records in found.items()}
        went_in, clean, rejected = values[SOURCE], values[CLEAN], values[REJECTED]
        flaws: list[str] = []
        if sorted(went_in) != sorted(b"%d" % number for number in range(self._sent)):
            flaws.append(f"{len(went_in)} of {self._sent} records are in {SOURCE}")
        agree = operator.eq if is_finished else operator.le
        if not agree(Counter(clean) + Counter(rejected), Counter(went_in)):
            flaws.append(f"{len(went_in)} in, {len(clean)} clean + {len(rejected)} rejected")
        if not all(map(is_clean, clean)) or any(map(is_clean, rejected)):
            flaws.append("records are in the wrong topic")
        for name in (SOURCE, CLEAN):
            kept = self._archived(name)
            if not agree(kept, Counter(found[name])):
                flaws.append(f"the archive has {sum(kept.values())} rows of {len(found[name])}")
        return flaws

    def _archived(self, topic: str) -> Counter[tuple[int, int, bytes]]:
        """Return the rows of a topic as any reader of Parquet files sees them."""
        path = self.directory / "archive"
        if not any(path.glob("topic=*/*.parquet")):
            return Counter()
        table = ds.dataset(str(path), partitioning="hive", exclude_invalid_files=False).to_table(
            columns=["partition", "offset", "value"], filter=ds.field("topic") == topic
        )
        return Counter(tuple(row.values()) for row in table.to_pylist())

    def _records(self, topic: str) -> list[tuple[int, int, bytes]]:
        found: list[tuple[int, int, bytes]] = []
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap", default="")
    given = parser.parse_args()
    given.directory.mkdir(parents=True)
    rounds = SmallRounds(given.directory.absolute(), given.seed, given.bootstrap)
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
