"""Kafka's own DumpLogSegments accepts our segments and both indexes."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from kafka_server import KafkaUnavailable, java_command

from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "orders-0"
# What DumpLogSegments prints when anything is not as it wants it.
COMPLAINTS = ("ismatch", "Found", "Exception", "isvalid: false", "Could not")


def dump(files: list[Path], *options: str) -> str:
    """The output of Kafka's tool; the test is skipped where it cannot run."""
    try:
        command = java_command(
            "kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options
        )
    except KafkaUnavailable as reason:
        pytest.skip(f"DumpLogSegments cannot run here: {reason}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert not [word for word in COMPLAINTS if word in output], output
    return output


def fill(log: Log, chance: random.Random, count: int) -> None:
    """Batches of all codecs and sizes, with timestamps in any order."""
    for number in range(count):
        batch = BatchBuilder()
        for _ in range(1 + chance.randrange(5)):
            timestamp = 1_700_000_000_000 + 100 * number + chance.randrange(2_000)
            batch.append(timestamp, b"key", b"v" * chance.choice([0, 10, 300, 5000]), [])
        log.append_bytes(
            batch.build(
                chance.choice([0, 1, 2, 3, 4]),
                producer_id=7,
                producer_epoch=0,
                base_sequence=number,
            ),
            1 + number // 100,
            1_700_000_000_000,
        )
        if chance.randrange(4) == 0:
            log.write()
    log.write()


def exported(disk: SimulatedDisk, target: Path, suffix: str) -> list[Path]:
    """The log's files with this suffix, written out for Java."""
    target.mkdir(exist_ok=True)
    files = []
    for path in disk.paths(DIRECTORY):
        name = path.rpartition("/")[2]
        (target / name).write_bytes(disk.open(path).read(0, 1 << 30))
        if name.endswith(suffix):
            files.append(target / name)
    return files


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> tuple[SimulatedDisk, Path]:
    """A log that was cut, crashed, went on, lost its oldest segment and was stopped cleanly."""
    disk = SimulatedDisk(random.Random(3))
    chance = random.Random(5)
    config = LogConfig()
    config.segment_bytes = 150_000
    for is_last in (False, True):
        logs = Logs(disk)
        logs.load()
        log = logs.open(DIRECTORY, bytes(16), config, None)
        logs.settle()
        fill(log, chance, 200)
        flush_id = logs.checkpoints.begin(100_000)
        while flush_id >= 0:
            disk.complete_flush(flush_id)
            flush_id = logs.checkpoints.on_flushed(flush_id)
        fill(log, chance, 50)
        if not is_last:
            disk.crash()
    log.advance_log_start_offset(log.segments[1].base_offset)
    logs.close_cleanly()
    assert len(log.segments) > 2
    return disk, tmp_path_factory.mktemp("kafka") / DIRECTORY


def test_every_batch_is_valid_and_every_record_can_be_read(directory):
    disk, target = directory

    files = exported(disk, target, ".log")
    output = dump(files, "--deep-iteration", "--print-data-log")

    assert output.count("baseOffset:") >= 250
    assert output.count("| offset:") >= 500


def test_both_indexes_pass_kafkas_sanity_check(directory):
    disk, target = directory

    files = exported(disk, target, "index")
    output = dump(files, "--index-sanity-check")

    assert len(files) >= 4
    assert output.count("passed sanity check") == len(files), output


def test_every_index_entry_names_a_batch_that_is_there(directory):
    disk, target = directory

    files = exported(disk, target, "index")
    output = dump(files, "--verify-index-only")
    entries = dump(files)

    assert f"Dumping {files[0]}" in output.replace(os.sep, "/")
    assert entries.count("offset: ") > 20
    assert entries.count("timestamp: ") > 20
