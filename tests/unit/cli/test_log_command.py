"""`tarry log` and `tarry health`: sizes, sound and damaged data, and what is told of it."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.cli.log import log as log_command
from tarry.cluster.state.records import TopicRemoved, encode_record as encode_metadata
from tarry.group.offsets.records import OffsetCommitted
from tarry.log.config import LogConfig
from tarry.log.logs import Logs
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk

TIME_MS = 1_700_000_000_000
FIRST = "00000000000000000000"


def write(logs: Logs, directory: str, *records: tuple[bytes | None, bytes | None]) -> None:
    log = logs.open(directory, bytes(16), LogConfig(), ProducerListener(ProducerStates(1 << 31)))
    logs.settle()
    for number, (key, value) in enumerate(records):
        batch = BatchBuilder()
        batch.append(TIME_MS + number, key, value, [("h", b"\xff")])
        log.append_bytes(batch.build(number % 2 * 4), 0, TIME_MS)
    log.write()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a broker that was stopped cleanly."""
    disk = SimulatedDisk(random.Random(1))
    logs = Logs(disk)
    logs.load()
    write(logs, "orders-0", (b"7", b"apples"), (b"\x00\xff", None), (None, b"pears"))
    write(logs, "orders-10", (b"1", b"x"))
    write(logs, "orders-2", (b"1", b"x"))
    commit = OffsetCommitted(
        "billing", topic="orders", partition=0, offset=2, metadata="", commit_timestamp_ms=TIME_MS
    )
    write(logs, "__consumer_offsets-0", commit.encode())
    write(logs, "__cluster_metadata-0", (None, encode_metadata(TopicRemoved(topic_id=bytes(16)))))
    logs.close_cleanly()
    root = tmp_path / "data"
    for path in ["", *(path[:-1] for path in disk.paths() if path.endswith("/"))]:
        (root / path).mkdir()
        for name in disk.paths(path):
            if not name.endswith("/"):
                (root / name).write_bytes(disk.content(name))
    (root / ".tarry_format").write_text("2\n")
    (root / ".lock").touch()
    return root


def run(*arguments: object) -> Result:
    return CliRunner().invoke(log_command, [str(one) for one in arguments])


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 4
    path.write_bytes(content)


# --- verify


def test_sound_data_is_told_in_a_table_and_exit_code_0(data: Path) -> None:
    result = run("verify", data)

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    titles = "partition segments batches records size begin end state"
    assert " ".join(lines[0].split()) == titles
    names = [line.split()[0] for line in lines[1:6]]
    assert names == [
        "__cluster_metadata-0",
        "__consumer_offsets-0",
        "orders-0",
        "orders-2",
        "orders-10",
    ]
    assert lines[-1] == f"{data}: 5 partitions sound; the broker was stopped cleanly"


def test_what_waits_is_told_beside_its_partition(data: Path) -> None:
    shutil.copytree(data / "orders-2", data / "orders-2.schedule")
    flip(data / "orders-2.schedule" / f"{FIRST}.log", 40)

    result = run("verify", data)

    names = [line.split()[0] for line in result.stdout.splitlines()[1:7]]
    assert names[-3:] == ["orders-2", "orders-2.schedule", "orders-10"]
    assert f"damaged: orders-2.schedule/{FIRST}.log (offset 0 at position 0)" in result.stdout


def test_damage_is_told_by_file_and_offset_and_exit_code_1(data: Path) -> None:
    flip(data / "orders-0" / f"{FIRST}.log", 40)

    result = run("verify", data)
    told = json.loads(run("verify", data, "--json").stdout)

    assert result.exit_code == 1
    assert f"damaged: orders-0/{FIRST}.log (offset 0 at position 0): " in result.stdout
    assert "1 of 5 partitions damaged" in result.stdout
    assert told["is_sound"] is False
    assert [one["partition"] for one in told["partitions"] if not one["is_sound"]] == ["orders-0"]


@pytest.mark.parametrize("name", ["recovery-points", ".tarry_format"])
def test_damage_outside_of_partitions_is_told(data: Path, name: str) -> None:
    (data / name).write_text("?")

    result = run("verify", data)

    assert result.exit_code == 1
    assert f"damaged: {name}: " in result.stdout


def test_data_of_a_newer_format_is_refused(data: Path) -> None:
    (data / ".tarry_format").write_text("99")

    assert "has format 99, written by a newer Tarry" in run("verify", data).stderr


def test_a_partition_that_went_is_told(data: Path) -> None:
    for path in (data / "orders-2").iterdir():
        path.unlink()
    (data / "orders-2").rmdir()

    assert "damaged: orders-2: missing: a recovery point names it" in run("verify", data).stdout


def test_one_partition_can_be_verified_in_place_and_as_a_copy(data: Path, tmp_path: Path) -> None:
    in_place = json.loads(run("verify", data / "orders-0", "--json").stdout)
    (data / "orders-0").rename(tmp_path / "copy-0")
    copy = json.loads(run("verify", tmp_path / "copy-0", "--json").stdout)

    for told in (in_place, copy):
        (partition,) = told["partitions"]
        assert (told["is_sound"], partition["records"]) == (True, 3)


@pytest.mark.parametrize("command", ["verify", "dump"])
def test_a_running_brokers_data_is_refused(data: Path, command: str) -> None:
    with (data / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = run(command, data)

    assert result.exit_code == 1
    assert result.stderr == (
        f"tarry: a broker is running on {data}: stop it first, or look at a copy of the directory\n"
    )


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nosuch", "does not exist: name a data directory (log.dirs)"),
        ("data/.lock", "is not a directory: name a data directory (log.dirs)"),
        (".", "holds no data of Tarry: name the directory that log.dirs names"),
    ],
)
def test_what_is_no_data_directory_is_refused(data: Path, path: str, sentence: str) -> None:
    result = run("verify", data.parent / path)

    assert result.exit_code == 1
    assert sentence in result.stderr


@contextmanager
def somebody_without_rights() -> Iterator[None]:
    """Run as `nobody` if we are root, who may read everything."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_data_that_may_not_be_read_is_refused(data: Path) -> None:
    # Not below pytest's own directory, into which nobody else may look.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        copy = shutil.copytree(data, Path(directory, "data"))
        (copy / "orders-0" / f"{FIRST}.log").chmod(0)

        with somebody_without_rights():
            result = run("verify", copy)

    assert "permission denied" in result.stdout.lower()


def test_nothing_is_changed(data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}

    run("verify", data)
    run("dump", data)

    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before


# --- dump


def rows(*arguments: object) -> list[dict[str, object]]:
    result = run("dump", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_dump_shows_batches_and_their_records(data: Path) -> None:
    found = rows(data / "orders-0" / f"{FIRST}.log", "--records")

    assert [one["kind"] for one in found] == ["batch", "record"] * 3
    first, apples, second, unreadable = found[:4]
    assert (first["base_offset"], first["position"], first["codec"]) == (0, 0, "none")
    assert (second["base_offset"], second["position"], second["codec"]) == (
        1,
        first["size"],
        "zstd",
    )
    assert (apples["key"], apples["value"], apples["timestamp"]) == ("7", "apples", TIME_MS)
    assert (unreadable["key_base64"], unreadable["value"]) == ("AP8=", None)
    assert unreadable["headers"] == [{"name": "h", "value_base64": "/w=="}]


def test_a_dump_of_a_directory_shows_every_kind_of_file(data: Path) -> None:
    kinds = {str(one["kind"]) for one in rows(data)}

    assert kinds >= {"batch", "timeindex", "epoch", "identity", "recovery point"}


def test_committed_offsets_and_metadata_are_decoded(data: Path) -> None:
    (_, commit) = rows(data / "__consumer_offsets-0" / f"{FIRST}.log", "--decode")
    (_, removed) = rows(data / "__cluster_metadata-0" / f"{FIRST}.log", "--decode")

    decoded = commit["decoded"]
    assert isinstance(decoded, dict)
    assert (decoded["group_id"], decoded["topic"], decoded["offset"]) == ("billing", "orders", 2)
    assert isinstance(removed["decoded"], dict)
    assert removed["decoded"]["kind"] == "TopicRemoved"


def test_text_escapes_what_a_terminal_must_not_get(data: Path) -> None:
    text = run("dump", data / "orders-0", "--records").stdout

    assert "key=\\x00\\xff  value=null" in text
    assert "\x00" not in text


def test_a_broken_crc_is_shown_and_fails(data: Path) -> None:
    flip(data / "orders-0" / f"{FIRST}.log", 62)

    result = run("dump", data / "orders-0" / f"{FIRST}.log", "--records")

    assert result.exit_code == 1
    assert result.stdout.count("the CRC does not match") == 1
    # The batches behind it are shown all the same.
    assert "value=pears" in result.stdout


def test_what_is_no_file_of_a_log_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()

    assert "is no file of a log: name one of .log" in run("dump", tmp_path / "notes.txt").stderr
    assert "holds no files of a log" in run("dump", tmp_path / "empty").stderr
    assert "does not exist" in run("dump", tmp_path / "nosuch").stderr


# --- dirs and health


@pytest.fixture
def cluster() -> GroupCluster:
    made = GroupCluster()
    made.topic("orders", partitions=2).logs[1].add(b"a", b"b")
    made.topic("refunds").logs[0].add(b"a")
    return made


@pytest.fixture
def tarry(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    return CommandRunner(cluster, monkeypatch)


def test_directories_show_topics_by_size_and_the_room_that_is_left(tarry: CommandRunner) -> None:
    assert tarry.ok("log dirs") == (
        "broker 1  /data  300 B  500 MB of 1.0 GB free\n"
        "topic    partitions   size\n"
        "orders            2  200 B\n"
        "refunds           1  100 B\n"
    )
    assert "orders          1  200 B\n" in tarry.ok("log dirs --partitions orders")
    (told,) = tarry.json("log dirs ref*")
    assert told["replicas"] == [
        {"topic": "refunds", "partition": 0, "size_bytes": 100, "offset_lag": 0, "is_future": False}
    ]


def test_sizes_of_a_topic_that_is_not_there_are_refused(tarry: CommandRunner) -> None:
    assert "topic 'order' does not exist; did you mean 'orders'?" in tarry.refused("log dirs order")
    assert "no topic matches 'x-*'" in tarry.refused("log dirs x-*")


def test_a_directory_that_is_offline_fails(tarry: CommandRunner, cluster: GroupCluster) -> None:
    cluster.disk_error = errors.KAFKA_STORAGE_ERROR

    assert tarry.refused("log dirs") == (
        "tarry: log directory /data of broker 1 is offline (KAFKA_STORAGE_ERROR)\n"
    )


def test_a_healthy_cluster_is_ok(tarry: CommandRunner) -> None:
    assert tarry.ok("health") == "ok  1 broker, 2 topics, 3 partitions, 500 MB free\n"
    assert tarry.ok("health -q") == ""
    assert tarry.json("health")["is_healthy"] is True


def test_damage_a_lost_leader_and_a_full_disk_are_not_healthy(
    tarry: CommandRunner, cluster: GroupCluster
) -> None:
    cluster.topics["orders"].logs[0].is_damaged = True
    cluster.topics["orders"].logs[1].leader_id = -1
    cluster.free_bytes = 10**6

    result = tarry.run("health")
    told = json.loads(tarry.run("health --json").stdout)

    assert result.exit_code == 1
    assert "tarry: orders [0] is damaged: it takes no records" in result.stderr
    assert "tarry: orders [1] is without a leader" in result.stderr
    assert "the disk of broker 1 (/data) has 1.0 MB free, less than 64 MB" in result.stderr
    assert told["is_healthy"] is False
    assert len(told["problems"]) == 3


def test_alive_is_less_than_healthy(tarry: CommandRunner, cluster: GroupCluster) -> None:
    cluster.topics["orders"].logs[0].is_damaged = True

    assert tarry.ok("health --live") == "ok  1 broker\n"


def test_no_answer_is_not_healthy() -> None:
    from tarry.cli.health import health

    result = CliRunner().invoke(health, ["-b", "127.0.0.1:1", "-m", "100ms", "--json"])

    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["is_healthy"] is False
    assert "refused" in told["problems"][0]


# --- against another broker's directory


@pytest.fixture
def copy(data: Path) -> Path:
    """The directory of another broker, with the same records."""
    other = data.with_name("copy")
    shutil.copytree(data, other)
    return other


def write_again(root: Path, directory: str, value: bytes) -> None:
    """Replace a partition's log by one with another value at offset 0, sound in itself."""
    batch = BatchBuilder()
    batch.append(TIME_MS, b"1", value, [("h", b"\xff")])
    (root / directory / f"{FIRST}.log").write_bytes(batch.build(0))


def test_copies_with_the_same_records_are_alike(data: Path, copy: Path) -> None:
    told = run("verify", data, "--against", copy)

    assert told.exit_code == 0
    assert told.output.splitlines()[-1].endswith("copy: 5 partitions in both, alike")


def test_a_record_that_differs_is_told_with_its_offset(data: Path, copy: Path) -> None:
    write_again(copy, "orders-2", b"y")

    told = run("verify", data, "--against", copy)
    shown = json.loads(run("verify", data, "--against", copy, "--json").output)

    assert told.exit_code == 1
    assert "differs: orders-2 at offset 0: the two records there are not the same" in told.output
    assert shown["is_sound"] is True
    assert shown["comparisons"][0]["is_alike"] is False
    assert [one["partition"] for one in shown["comparisons"][0]["differences"]] == ["orders-2"]


def test_a_broker_that_was_not_stopped_cleanly_is_not_compared(data: Path, copy: Path) -> None:
    (copy / ".tarry_clean_shutdown").unlink()

    told = run("verify", data, "--against", copy)

    assert told.exit_code != 0
    assert "was not stopped cleanly" in told.output


def test_records_that_only_one_has_at_its_end_are_no_difference(data: Path, copy: Path) -> None:
    path = copy / "orders-0" / f"{FIRST}.log"
    content = path.read_bytes()
    size = 12 + int.from_bytes(content[8:12], "big")
    path.write_bytes(content[:size])

    told = run("verify", data, "--against", copy)

    assert "copy: 5 partitions in both, alike" in told.output
