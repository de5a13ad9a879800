"""`tarry metadata`: what it prints, its exit codes, and what it refuses, over a simulated etcd."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from tests.support.metadata_stores import EmbeddedSubject

from tarry.base.doors import Event
from tarry.base.etcd import Put
from tarry.base.partition_row import PartitionRow
from tarry.cli.metadata import metadata
from tarry.cluster.lives.identity import FILE
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.records import TopicCreated
from tarry.cluster.store.embedded import METADATA_DIRECTORY
from tarry.runtime.etcd.asking import AskedEtcd
from tarry.simulation.etcd import SimulatedEtcd, SimulatedEtcdDoor

STORE = "etcd://etcd-1:2379,etcd-2:2379/demo"
KEYS = Keys("/demo/")


class Store:
    """A simulated etcd in place of the one that `--store` names."""

    def __init__(self) -> None:
        self.etcd = SimulatedEtcd(Random(8))
        self.events: list[Event] = []
        self.door = SimulatedEtcdDoor(self.etcd, Random(8), self.events.append)

    def wait(self, timeout_ms: int) -> Sequence[Event]:
        self.etcd.advance(self.etcd.now_ms + 5)
        self.door.step()
        events, self.events[:] = list(self.events), []
        return events


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    monkeypatch.setattr(
        "tarry.runtime.etcd.metadata.open_etcd",
        lambda stack, address, files: AskedEtcd(
            made.door, made.wait, lambda: made.etcd.now_ms, address.text
        ),
    )
    return made


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The data directory of a broker that was stopped."""
    subject = EmbeddedSubject()
    partitions = [PartitionRow(1, 0, -1, 0, [1], [1])] * 2
    subject.change(
        TopicCreated(topic_id=bytes(range(16)), name="orders", partitions=partitions, configs={})
    )
    subject.settle()
    subject.logs.close_cleanly()
    root = tmp_path / "data"
    (root / METADATA_DIRECTORY).mkdir(parents=True)
    for path in [*subject.disk.paths(), *subject.disk.paths(METADATA_DIRECTORY)]:
        if not path.endswith("/"):
            (root / path).write_bytes(subject.disk.content(path))
    return root


def run(*words: str) -> Result:
    return CliRunner().invoke(metadata, list(words))


def test_a_directory_is_moved_and_told_how_to_start(store: Store, directory: Path) -> None:
    done = run("migrate", str(directory), "--store", STORE)
    lines = done.stdout.splitlines()

    assert done.exit_code == 0, done.output
    assert lines[0] == "1 topic and 2 partitions moved: 6 rows in etcd"
    assert lines[1].startswith("start it as broker 1 of cluster ")
    assert lines[2].split() == [
        *("tarry", "serve", "--set", "node.id=1"),
        *("--set", f"metadata.store={STORE}", "--set", f"log.dirs={directory}"),
    ]
    assert json.loads((directory / FILE).read_text())["broker_id"] == 1


def test_a_move_is_told_as_json(store: Store, directory: Path) -> None:
    done = run("migrate", str(directory), "--store", STORE, "--node-id", "5", "--json")
    told = json.loads(done.stdout)

    assert len(told.pop("cluster_id")) == 22
    assert told == {"node_id": 5, "topics": 1, "partitions": 2, "rows": 6, "rows_written": 6}


def test_a_running_brokers_directory_is_refused(store: Store, directory: Path) -> None:
    descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    done = run("migrate", str(directory), "--store", STORE)
    os.close(descriptor)

    assert done.exit_code == 1
    assert "another broker" in done.stderr
    assert "stop it" in done.stderr
    assert store.etcd.rows(b"/") == []


def test_what_holds_no_topics_of_a_broker_is_refused_and_not_touched(
    store: Store, tmp_path: Path
) -> None:
    empty = run("migrate", str(tmp_path), "--store", STORE)
    absent = run("migrate", str(tmp_path / "absent"), "--store", STORE)

    assert empty.exit_code == absent.exit_code == 1
    assert "holds no topics of a single broker" in empty.stderr
    assert "does not exist" in absent.stderr
    assert list(tmp_path.iterdir()) == []


def test_sound_rows_are_told_as_a_table(store: Store, directory: Path) -> None:
    run("migrate", str(directory), "--store", STORE)
    done = run("check", "--store", STORE)

    assert done.exit_code == 0
    assert [line.split(maxsplit=1)[0] for line in done.stdout.splitlines() if line][1:-1] == [
        *("cluster", "etcd", "brokers", "topics", "deleted", "rows"),
    ]
    assert "1 with 2 partitions" in done.stdout
    assert "1 registered, 0 live" in done.stdout
    assert done.stdout.endswith(f"{STORE}: sound\n")


def test_damage_is_told_and_is_a_failure(store: Store, directory: Path) -> None:
    run("migrate", str(directory), "--store", STORE)
    key = KEYS.part(bytes(range(16)), 1)
    store.etcd.transact([], [Put(key, b"[7]"), Put(KEYS.configs(9), b"[1,{}]")])
    table = run("check", "--store", STORE)
    told = json.loads(run("check", "--store", STORE, "--json").stdout)

    assert table.exit_code == 1
    assert f"damaged: {key.decode()}: etcd holds" in table.stdout
    assert "note: /demo/configs/9: settings of broker 9" in table.stdout
    assert table.stdout.endswith(f"{STORE}: 1 problem in 7 rows\n")
    assert not told["is_sound"]
    assert [(each["key"], each["is_damage"]) for each in told["problems"]] == [
        (key.decode(), True),
        ("/demo/configs/9", False),
    ]


def test_trouble_of_etcd_is_told_and_is_a_failure(store: Store, directory: Path) -> None:
    run("migrate", str(directory), "--store", STORE)
    store.etcd.has_space = False
    table = run("check", "--store", STORE)
    told = json.loads(run("check", "--store", STORE, "--json").stdout)

    assert table.exit_code == 1
    assert "trouble: etcd has no room left" in table.stdout
    assert told["problems"] == []
    assert not told["is_sound"]
    assert len(told["etcd_problems"]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("embedded", "tarry log verify"),
        ("etcd://127.0.0.1:2379", "names no prefix"),
        ("http://127.0.0.1:2379/demo", "members of etcd and a prefix"),
    ],
)
@pytest.mark.parametrize("command", [["check"], ["migrate", "."]])
def test_an_address_that_names_no_store_is_wrong_usage(
    command: list[str], text: str, words: str
) -> None:
    done = run(*command, "--store", text)

    assert done.exit_code == 2
    assert words in done.stderr
