"""ArrowConsumer against scripted brokers: what its batches hold, and where reading goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from tests.support.client.consumer_scene import answer_with_bytes
from tests.support.client.scripted_cluster import WALL_MS, ScriptedCluster
from tests.support.client.scripted_consumer import face_of

import tarry.client.arrow
from tarry.client import CorruptRecords
from tarry.client.sync.interrupts import Interrupts
from tarry.protocol import api_keys

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")

from tarry.client.arrow import ArrowConsumer  # noqa: E402
from tarry.client.arrow.tables import Choice, positions_behind  # noqa: E402


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


def reading(cluster: ScriptedCluster, **settings: Any) -> ArrowConsumer:
    consumer = face_of(ArrowConsumer, cluster, auto_offset_reset="earliest", **settings)
    consumer.assign([("t", 0)])
    return consumer


def test_a_batch_has_all_columns_in_their_types(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(b"one", b"two")

    batch = next(reading(cluster).batches())

    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    assert list(zip(batch.schema.names, batch.schema.types, strict=True)) == [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pair)),
        ("leader_epoch", pa.int32()),
    ]
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [WALL_MS, WALL_MS]
    assert batch["value"].to_pylist() == [b"one", b"two"]


def test_rows_go_on_inside_a_batch(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(*(b"%d" % number for number in range(7)), codec=4)

    batches = reading(cluster).batches(max_rows=3, columns=["offset"])

    assert [next(batches)["offset"].to_pylist() for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_partitions_share_a_batch(cluster: ScriptedCluster):
    logs = cluster.topic("t", partitions=2).logs
    for log in logs:
        log.add(b"a", b"b")
    consumer = reading(cluster)
    consumer.assign([("t", 0), ("t", 1)])

    batch = next(consumer.batches(columns=["partition", "topic", "offset"]))

    assert batch.to_pylist() == [
        {"partition": partition, "topic": "t", "offset": offset}
        for partition in (0, 1)
        for offset in (0, 1)
    ]


def test_reading_goes_on_where_it_is_sought(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(*(b"%d" % number for number in range(9)))
    consumer = reading(cluster)
    batches = consumer.batches(max_rows=2, columns=["offset"])
    next(batches)

    consumer.seek("t", 0, 6)

    assert next(batches)["offset"].to_pylist() == [6, 7]
    assert consumer.position("t", 0) == 8


def test_what_an_iteration_did_not_yield_comes_as_rows(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(b"a", b"b", b"c")
    consumer = reading(cluster)
    for record in consumer:
        assert record.value == b"a"
        break

    batch = next(consumer.batches(columns=["value"]))

    assert batch["value"].to_pylist() == [b"b", b"c"]


def test_rows_follow_rows_as_records(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(b"a", b"b", b"c")
    consumer = reading(cluster)
    next(consumer.batches(max_rows=1))

    (group,) = consumer.poll()

    assert [record.value for record in group.records] == [b"b", b"c"]


def test_rows_of_a_batch_that_could_not_be_built_come_again(
    cluster: ScriptedCluster, monkeypatch: Any
):
    cluster.topic("t").logs[0].add(b"a", b"b", b"c")
    consumer = reading(cluster)
    next(consumer.batches(max_rows=1))

    with monkeypatch.context() as context:
        context.setattr(Choice, "batch", no_memory)
        with pytest.raises(MemoryError):
            next(consumer.batches())

    assert next(consumer.batches(columns=["value"]))["value"].to_pylist() == [b"b", b"c"]


def no_memory(choice: Choice, taker: Any) -> Any:
    raise MemoryError


def test_iterations_end_with_a_wakeup(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(b"a")
    consumer = reading(cluster)
    values = []

    for batch in consumer.batches(columns=["value"]):
        values += batch["value"].to_pylist()
        consumer.wakeup()

    assert values == [b"a"]


def test_damaged_bytes_are_an_error_with_their_place(cluster: ScriptedCluster):
    log = cluster.topic("t").logs[0]
    log.add(b"a")
    damaged = log.batches[0][:-1] + b"\x07"
    cluster.rule(api_keys.FETCH, answer_with_bytes(damaged))

    with pytest.raises(CorruptRecords, match=r"t \[0\] cannot be read at offset 0"):
        next(reading(cluster).batches())


def test_a_batch_says_what_a_commit_of_it_means(cluster: ScriptedCluster):
    cluster.topic("t").logs[0].add(b"a", b"b", b"c")
    batch = next(reading(cluster).batches(max_rows=2, columns=["value"]))

    assert positions_behind(batch) == {("t", 0): 2}
    with pytest.raises(ValueError, match="has 1 of the 2 rows"):
        positions_behind(batch.slice(1))
    with pytest.raises(ValueError, match="does not say where it ends"):
        positions_behind(batch.replace_schema_metadata())


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"columns": "offset"}, TypeError, "columns takes names"),
        ({"columns": ["offset", "ofset"]}, ValueError, "no column 'ofset'; the columns are topic"),
        ({"columns": []}, ValueError, "one at least"),
        ({"columns": ["value", "value"]}, ValueError, "each name once"),
        ({"max_rows": 0}, ValueError, "one row at the least"),
        ({"max_rows": 1.5}, TypeError, "max_rows takes an int"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_read(
    arguments: Any, error: type[Exception], words: str, cluster: ScriptedCluster
):
    consumer = reading(cluster)

    with pytest.raises(error, match=words):
        consumer.batches(**arguments)


def test_every_public_name_is_there_and_says_where_it_comes_from():
    for module, names in tarry.client.arrow.MODULES.items():
        for name in names:
            found = getattr(tarry.client.arrow, name)
            assert found is getattr(import_module(module), name)
            assert name in dir(tarry.client.arrow)
    with pytest.raises(AttributeError, match="has no attribute 'scna'"):
        _ = tarry.client.arrow.scna  # type: ignore[attr-defined]


def test_neighbours_of_the_arrow_face_load_no_pyarrow():
    program = (
        "import sys, tarry.client.arrow\n"
        "from tarry.client import Consumer, Producer\n"
        "assert 'pyarrow' not in sys.modules\n"
        "sys.modules['pyarrow'] = None\n"
        "try:\n"
        "    tarry.client.arrow.ArrowConsumer()\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )

    assert 'pip install "tarry[arrow]"' in done.stdout, done.stderr


@pytest.mark.usefixtures("interruptible")
def test_rows_that_an_interrupt_meets_come_again(cluster: ScriptedCluster, monkeypatch: Any):
    cluster.topic("t").logs[0].add(*(b"%d" % number for number in range(4)))
    consumer = reading(cluster)
    next(consumer.batches(max_rows=1))

    def nudge(interrupts: Interrupts) -> None:
        interrupts.hold()
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(consumer._driver, "nudge", nudge)
        with pytest.raises(KeyboardInterrupt):
            next(consumer.batches(max_rows=2))

    assert next(consumer.batches(columns=["offset"]))["offset"].to_pylist() == [1, 2, 3]
