"""Kafka's own DumpLogSegments reads what compaction has left: gaps, empty batches, horizons."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from tests.interop.test_dump_log_segments import dump
from tests.support.compaction_scene import DIRECTORY, CompactionScene


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompactionScene, Path]:
    """A log compacted twice, with all codecs, tombstones and a producer that fell silent."""
    scene = CompactionScene()
    scene.config.segment_bytes = 20_000
    scene.config.index_interval_bytes = 500
    chance = random.Random(5)
    for _ in range(2):
        scene.append((b"k0", b"by a producer that fell silent"), producer_id=9)
        for number in range(300):
            records = [
                (
                    b"k%d" % chance.randrange(60),
                    None if chance.randrange(5) == 0 else bytes(chance.randrange(300)),
                )
                for _ in range(1 + chance.randrange(5))
            ]
            scene.append(
                *records, codec=number % 5, producer_id=7, timestamp=scene.now_wall_ms + number
            )
        scene.roll()
        scene.compact(units=1_000)
    scene.logs.close_cleanly()
    target = tmp_path_factory.mktemp("kafka") / DIRECTORY
    target.mkdir()
    for path in scene.disk.paths(DIRECTORY):
        file = scene.disk.open(path)
        (target / path.rpartition("/")[2]).write_bytes(file.read(0, file.size))
    return scene, target


def test_every_batch_is_valid_and_every_record_is_the_same(compacted):
    scene, target = compacted

    output = dump(sorted(target.glob("*.log")), "--deep-iteration", "--print-data-log")

    found = [int(text) for text in re.findall(r"\| offset: (\d+) ", output)]
    assert found == [record.offset for record in scene.records()]
    assert "deleteHorizonMs: OptionalLong[" in output
    assert re.search(r"lastOffset: \d+ count: 0 ", output)


def test_both_indexes_are_sound_and_name_batches_that_are_there(compacted):
    _, target = compacted

    files = sorted(target.glob("*index"))
    sanity = dump(files, "--index-sanity-check")
    verified = dump(files, "--verify-index-only")
    entries = dump(files)

    # The index of a segment smaller than an index interval has nothing to check.
    assert sanity.count("passed sanity check") + sanity.count("is empty") == len(files)
    assert sanity.count("is empty") < len(files) // 2
    assert verified.count("Dumping") == len(files)
    assert entries.count("offset: ") > 10
    assert entries.count("timestamp: ") > 2
