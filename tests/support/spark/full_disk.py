"""A full disk below sink and archive, without Spark: a few rounds in a test, more by hand.

    mkdir disk && mount -t tmpfs -o size=400k tmpfs disk
    python -m tests.support.spark.full_disk --rounds 100 --seed 1 disk

Each round leaves a random room on the disk, writes a micro-batch to a topic and archives the topic;
what fails has to say that room is needed, and is started again when there is some.  In the end each
record is in the topic once, and the archive is whole.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.verify import verify
from tarry.spark.pipeline.faults import fault_of
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.commit import commit
from tarry.spark.writing.write_options import parse_write_options
from tarry.testing import Tarry

TOPIC = "orders"
PARTITIONS = 2
ROWS_MAX = 200
ROW_BYTES = 100


def fill_up(disk: Path, room: int) -> None:
    """Fill a disk up to so many bytes."""
    with (disk / "filling").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            os.ftruncate(file.fileno(), max(0, file.tell() - room))


class FullDisk:
    """One broker whose log is elsewhere, and a disk."""

    def __init__(self, disk: Path, seed: int, broker: Tarry) -> None:
        self.disk = disk
        self.random = random.Random(seed)
        self.broker = broker
        self.settings = {"bootstrap.servers": broker.bootstrap}
        self.options = parse_write_options(
            {
                "kafka.bootstrap.servers": broker.bootstrap,
                "checkpointLocation": str(disk / "checkpoint"),
                "topic": TOPIC,
            },
            is_stream=True,
        )
        self.sent: list[bytes] = []
        self.faults: Counter[str] = Counter()

    def round(self, number: int) -> None:
        values = [b"%d-%d" % (number, row) for row in range(self.random.randint(1, ROWS_MAX))]
        padded = [value.ljust(ROW_BYTES) for value in values]
        self.sent += padded
        # Most failures come where a little room is left.
        fill_up(self.disk, self.random.choice((0, 1, 2, 3, 5, 8)) * 4096)
        if not self.try_it("sink", lambda: self.write(number, padded)):
            self.make_room()
            self.write(number, padded)
        fill_up(self.disk, self.random.choice((0, 1, 2, 3, 5, 8)) * 4096)
        if not self.try_it("archive", self.archive):
            self.make_room()
            self.archive()
        self.make_room()

    def write(self, number: int, values: list[bytes]) -> None:
        rows = pa.record_batch({"value": values})
        commit(self.options, "q", number, [TaskWriter(self.options, ["value"], 0).write([rows])])

    def archive(self) -> None:
        for _ in archive(
            None, TopicChoice(names=(TOPIC,)), self.disk / "lake", ArchiveOptions(self.settings)
        ):
            pass

    def try_it(self, what: str, work: object) -> bool:
        assert callable(work)
        try:
            work()
        except Exception as error:
            told = fault_of(error)
            sentence = f"{type(error).__name__}: {told.sentence}"
            assert "ake room" in sentence, sentence
            assert not told.is_hopeless, sentence
            self.faults[what] += 1
            return False
        self.faults[f"{what}: room enough"] += 1
        return True

    def make_room(self) -> None:
        (self.disk / "filling").unlink(missing_ok=True)

    def flaws(self) -> list[str]:
        found = Counter(record.value for record in self.broker.records(TOPIC))
        flaws = [] if found == Counter(self.sent) else ["the topic is not what was sent"]
        return flaws + list(verify(self.disk / "lake", self.settings).faults)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("disk", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with Tarry() as broker:
        broker.topic(TOPIC, partitions=PARTITIONS, retention_ms=-1)
        scene = FullDisk(given.disk.absolute(), given.seed, broker)
        for number in range(given.rounds):
            scene.round(number)
        flaws = scene.flaws()
    for what, count in sorted(scene.faults.items()):
        sys.stdout.write(f"{count} x {what}\n")
    sys.stdout.write("\n".join(flaws or ["all is well"]) + "\n")
    sys.exit(1 if flaws else 0)


if __name__ == "__main__":
    main()
