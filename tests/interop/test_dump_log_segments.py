"""Kafka's own DumpLogSegments accepts our segments and both indexes, and `tarry log dump` shows
what it shows."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.broker.broker_user import a_batch
from tests.support.broker.schedule_user import ScheduleUser, move
from tests.support.interop.kafka_server import TOOLS_POM, KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S

from tarry.cli.log_dump import dump_command
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.records.builder import BatchBuilder, Headers
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "orders-0"
DUMP = "org.apache.kafka.tools.DumpLogSegments"

# Words that DumpLogSegments prints when it finds a flaw.
COMPLAINTS = ("ismatch", "Found", "Exception", "isvalid: false", "Could not")


def dump(files: list[Path], *options: str) -> str:
    """The output of Kafka's tool; the test is skipped where it cannot run."""
    try:
        named = ("--files", ",".join(map(str, files)))
        command = java_command(DUMP, *named, *options, pom=TOOLS_POM)
    except KafkaUnavailable as reason:
        pytest.skip(f"DumpLogSegments cannot run here: {reason}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
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


def exported(
    disk: SimulatedDisk, target: Path, suffix: str, directory: str = DIRECTORY
) -> list[Path]:
    """The log's files with this suffix, written out for Java."""
    target.mkdir(exist_ok=True, parents=True)
    files = []
    for path in disk.paths(directory):
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
        flush_id = logs.recovery_points.begin(100_000)
        while flush_id >= 0:
            disk.complete_flush(flush_id)
            flush_id = logs.recovery_points.on_flushed(flush_id)
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


# A field of Kafka's tool, and what it is called in our JSON.
BATCH_FIELDS = {
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "count": "records",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "position": "position",
    "CreateTime": "max_timestamp",
    "size": "size",
    "magic": "magic",
    "compresscodec": "codec",
    "crc": "crc",
    "isvalid": "is_valid",
}


def ours(files: list[Path], *options: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(dump_command, [*map(str, files), "--json", *options])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def fields_of(line: str) -> dict[str, str]:
    """`name: value` of a line of Kafka's."""
    return dict(re.findall(r"(\w+): (\S+)", line))


def test_our_dump_of_segments_shows_what_kafkas_shows(directory):
    disk, target = directory
    files = exported(disk, target, ".log")

    lines = dump(files, "--deep-iteration", "--print-data-log").splitlines()
    found = ours(files, "--records")

    theirs = [fields_of(line) for line in lines if line.startswith("baseOffset:")]
    batches = [one for one in found if one["kind"] == "batch"]
    assert len(theirs) == len(batches) >= 250
    for their, batch in zip(theirs, batches, strict=True):
        for name, field in BATCH_FIELDS.items():
            assert their[name] == str(batch[field]).lower(), (name, batch)
    # "| offset: 5 CreateTime: 17… keySize: 3 valueSize: 10 sequence: 4 headerKeys: [] key: … "
    records = [fields_of(line) for line in lines if line.startswith("| offset:")]
    own = [one for one in found if one["kind"] == "record"]
    assert [(one["offset"], one["CreateTime"], one["sequence"]) for one in records] == [
        (str(one["offset"]), str(one["timestamp"]), str(one["sequence"])) for one in own
    ]
    assert [int(one["valueSize"]) for one in records] == [len(str(one["value"])) for one in own]


def test_our_dump_of_indexes_shows_what_kafkas_shows(directory):
    disk, target = directory
    files = exported(disk, target, "index")

    lines = dump(files).splitlines()
    found = ours(files)

    theirs = [fields_of(line) for line in lines if line.startswith(("offset:", "timestamp:"))]
    own = [one for one in found if one["kind"] in ("index", "timeindex")]
    assert [sorted(one.items()) for one in theirs] == [
        sorted((key, str(value)) for key, value in one.items() if key not in ("kind", "file"))
        for one in own
    ]


@pytest.fixture(scope="module")
def scheduled() -> SimulatedDisk:
    """Released records of every kind, some that wait, and notes of every kind."""
    user = ScheduleUser(compression_type="gzip")
    user.produce(a_batch(b"direct"))
    user.park(b"whole", 1_000)
    user.park_all((b"first", 1_000, "one"), (b"second", 2_000, "two"), (b"waits", 9_000_000, ""))
    heads: Headers = [("x-sched-cron", b"* * * * *"), ("x-sched-id", b"cron")]
    user.produce(a_batch(b"again", headers=(heads,)))
    user.park(b"cancelled", 3_000, "three")
    user.park(b"replaced", 3_000, "four")
    user.park(b"newer", 4_000, "four")
    user.park(b"moved", 3_000, "five")
    user.cancel("three")
    user.change(move("five", 5_000))
    for _ in range(140):
        user.pass_time(1_000)
    user.hand.stop()
    return user.hand.disk


def test_released_records_are_ordinary_records(scheduled: SimulatedDisk, tmp_path: Path):
    files = exported(scheduled, tmp_path / DIRECTORY, ".log")
    indexes = exported(scheduled, tmp_path / DIRECTORY, "index")

    output = dump(files, "--deep-iteration", "--print-data-log")
    dump(indexes, "--index-sanity-check")
    dump(indexes, "--verify-index-only")

    values = re.findall(r"payload: (\w+)", output)
    assert values[:7] == ["direct", "whole", "first", "second", "newer", "moved", "again"]
    assert set(values[7:]) == {"again"}
    assert "isControl: true" not in output
    assert set(re.findall(r"producerId: (\S+)", output)) == {"-1"}


def test_the_log_of_what_waits_is_a_log(scheduled: SimulatedDisk, tmp_path: Path):
    name = f"{DIRECTORY}.schedule"
    files = exported(scheduled, tmp_path / name, ".log", name)
    indexes = exported(scheduled, tmp_path / name, "index", name)

    output = dump(files, "--deep-iteration", "--print-data-log")
    dump(indexes, "--index-sanity-check")

    assert "payload: waits" in output
    assert output.count("isControl: true") >= 10
