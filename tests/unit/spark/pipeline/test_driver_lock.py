"""Directory of a run: one pipeline, one cluster, and one process for each stage."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from tarry.spark.pipeline import driver_lock
from tarry.spark.pipeline.driver_lock import BINDING, bind, bind_state, locked, own_directory
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import stages_of

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"] }
archive = { path = "lake" }
"""


def pipeline_of(tmp_path: Path, name: str = "orders") -> Pipeline:
    path = tmp_path / f"{name}.toml"
    path.write_text(FILE.replace("orders", name, 1))
    return read_pipeline(path, {})


def test_a_checkpoint_is_of_one_pipeline_and_one_cluster(tmp_path: Path) -> None:
    pipeline = pipeline_of(tmp_path)
    bind(pipeline, "a")
    bind(pipeline, "a")

    with pytest.raises(
        StageFailed, match=r"belongs to the cluster a, and .* leads to the cluster b"
    ):
        bind(pipeline, "b")
    with pytest.raises(
        StageFailed, match="belongs to the pipeline 'orders', and this is 'returns'"
    ):
        bind(pipeline_of(tmp_path, "returns"), "a")
    (own_directory(pipeline) / BINDING).write_text("{")
    with pytest.raises(StageFailed, match="cannot be read"):
        bind(pipeline, "a")


def test_a_stage_is_run_by_one_process(tmp_path: Path) -> None:
    pipeline = pipeline_of(tmp_path)
    bind(pipeline, "a")
    stages = stages_of(pipeline)

    with locked(pipeline, stages):
        told = f"stage archive is run by process {os.getpid()} already"
        with pytest.raises(StageFailed, match=told), locked(pipeline, stages):
            pass
    with locked(pipeline, stages):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_stages_run_where_the_file_system_has_no_locks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    pipeline = stateful(tmp_path)
    bind(pipeline, "a")
    stages = stages_of(pipeline)
    monkeypatch.setattr("fcntl.flock", refusing(number))

    with locked(pipeline, stages):
        (told,) = caplog.messages

    assert len(stages) > 1
    assert f"the file system of {pipeline.checkpoint} has no locks, " in told
    assert "see that no other process runs this pipeline" in told


def test_stages_behind_one_that_finds_no_locks_are_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a server of NFS that has no locks left for a moment."""
    pipeline = stateful(tmp_path)
    bind(pipeline, "a")
    first, *others = stages_of(pipeline)
    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", refusing(errno.ENOLCK, times=1))

        with locked(pipeline, [first, *others]):
            for stage in others:
                with (
                    pytest.raises(StageFailed, match=f"stage {stage.name} is run by process"),
                    locked(pipeline, [stage]),
                ):
                    pass
            with locked(pipeline, [first]):
                pass
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        # SMB denies a held lock in this way.
        (errno.EACCES, r"stage archive is run by process \? already"),
        (errno.EIO, r"the checkpoint .* cannot be written: Input/output error"),
    ],
)
def test_a_lock_that_is_denied_or_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
) -> None:
    pipeline = pipeline_of(tmp_path)
    bind(pipeline, "a")
    monkeypatch.setattr("fcntl.flock", refusing(number))

    with pytest.raises(StageFailed, match=sentence), locked(pipeline, stages_of(pipeline)):
        pass


def refusing(number: int, times: int = 99) -> Callable[[FileIO, int], None]:
    """Make a lock of files that the system refuses so often."""
    left = [number] * times
    lock = fcntl.flock

    def flock(file: FileIO, operation: int) -> None:
        if left:
            raise OSError(left.pop(), os.strerror(number))
        lock(file, operation)

    return flock


DEDUPLICATE = 'deduplicate = { by = ["event_id"], within = "24h" }\n'

STATEFUL = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"], time = "at" }
decode = { format = "json", schema = "order.json" }
deduplicate = { by = ["event_id"], within = "24h" }
clean = { topic = "orders.clean", rejected = "orders.rejected" }
[[aggregate]]
name = "revenue"
window = "5m"
late = "10m"
by = ["country"]
values = { orders = "count(*)" }
topic = "orders.revenue"
[[wait]]
name = "unpaid"
key = "order_id"
from = "kind = 'placed'"
until = "kind = 'paid'"
within = "30m"
topic = "orders.unpaid"
"""


FIELDS = {
    "at": {"type": "string", "format": "date-time"},
    "event_id": {"type": "integer"},
    "id": {"type": "integer"},
    "order_id": {"type": "integer"},
    "payment_id": {"type": "integer"},
    "kind": {"type": "string"},
    "country": {"type": "string"},
    "city": {"type": "string"},
}


def stateful(tmp_path: Path, text: str = STATEFUL, **changed: dict[str, str]) -> Pipeline:
    """Pipeline with state, whose schema has these fields changed."""
    schema = {"type": "object", "properties": {**FIELDS, **changed}}
    (tmp_path / "order.json").write_text(json.dumps(schema))
    path = tmp_path / "orders.toml"
    path.write_text(text)
    return read_pipeline(path, {})


def bound(pipeline: Pipeline) -> None:
    """Let the stages have run once."""
    bind(pipeline, "a")
    bind_state(pipeline, stages_of(pipeline))
    for stage in stages_of(pipeline):
        stage.path.mkdir()


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("event_id", "id", 'stage clean: .* by = \\["event_id"\\], and .* by = \\["id"\\]'),
        ('"country"', '"city"', 'stage revenue: .* by = \\["country"\\], and .*"city"'),
        ('"5m"', '"1h"', 'stage revenue: .* window = "5m", and .* window = "1h"'),
        ('window = "5m"', 'session = "5m"', 'window = "5m", and the file has no window'),
        ("count(*)", "sum(1)", "stage revenue: .* values = .*count.*sum"),
        ("order_id", "payment_id", 'stage unpaid: .* key = "order_id"'),
        ('"at"', '"sent"', 'stage clean: .* of time = "at", and the file has time = "sent"'),
        (', time = "at"', "", 'stage clean: .* of time = "at", and the file has no time'),
        (DEDUPLICATE, "", "stage clean: .* is of by = .*, and the file has no by: write what it"),
    ],
)
def test_what_state_is_made_of_does_not_change(
    tmp_path: Path, was: str, becomes: str, told: str
) -> None:
    first, other = stateful(tmp_path), stateful(tmp_path, STATEFUL.replace(was, becomes, 1))
    longer = STATEFUL.replace("24h", "48h").replace("10m", "20m").replace("30m", "40m")
    later = stateful(tmp_path, longer)
    bound(first)

    with pytest.raises(StageFailed, match=told):
        bind_state(other, stages_of(other))
    bind_state(later, stages_of(later))
    for stage in stages_of(first):
        stage.path.rmdir()
    bind_state(other, stages_of(other))
    for stage in stages_of(first):
        stage.path.mkdir()
    with pytest.raises(StageFailed):
        bind_state(first, stages_of(first))


DERIVED = STATEFUL.replace(
    "[[aggregate]]",
    """[derive]
place = "upper(country)"
area = "concat(place, '/', city)"
other = "kind"
[[aggregate]]""",
    1,
).replace('by = ["country"]', 'by = ["area"]', 1)


def test_derived_columns_that_state_is_made_of_stay_as_they_are(tmp_path: Path) -> None:
    bound(stateful(tmp_path, DERIVED))

    for was, becomes in (("upper", "lower"), ("'/'", "'-'")):
        other = stateful(tmp_path, DERIVED.replace(was, becomes, 1))
        with pytest.raises(StageFailed, match=f"stage revenue: .* file has derive = .*{becomes}"):
            bind_state(other, stages_of(other))
    # No state is made of it.
    other = stateful(tmp_path, DERIVED.replace('other = "kind"', 'other = "city"', 1))
    bind_state(other, stages_of(other))


def test_fields_inside_others_that_state_is_made_of_keep_their_types(tmp_path: Path) -> None:
    text = STATEFUL.replace('"event_id"', '"meta.event.id"', 1)

    def pipeline(kind: str) -> Pipeline:
        event = {"type": "object", "properties": {"id": {"type": kind}}}
        return stateful(tmp_path, text, meta={"type": "object", "properties": {"event": event}})

    bound(pipeline("integer"))
    other = pipeline("boolean")

    with pytest.raises(StageFailed, match=r"column meta\.event\.id of type integer, .* bool: "):
        bind_state(other, stages_of(other))


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("event_id", "stage clean: the state in .* column event_id of type integer, .* double: "),
        ("country", "stage revenue: .* country of type string, and the schema makes it double: "),
        ("order_id", "stage unpaid: .* double: .* had, or name another checkpoint"),
    ],
)
def test_columns_that_state_is_made_of_keep_their_types(
    tmp_path: Path, column: str, told: str
) -> None:
    bound(stateful(tmp_path))
    changed = stateful(tmp_path, **{column: {"type": "number"}})

    with pytest.raises(StageFailed, match=told):
        bind_state(changed, stages_of(changed))


def test_other_columns_may_change_their_types(tmp_path: Path) -> None:
    bound(stateful(tmp_path))
    # The event time is a time of microseconds in every state, whatever the values have.
    changed = stateful(tmp_path, city={"type": "number"}, at={"type": "integer"})

    bind_state(changed, stages_of(changed))


def avro(tmp_path: Path, **kinds: Any) -> Pipeline:
    """Pipeline with state, whose values are Avro with fields of these types, others texts."""
    pytest.importorskip("fastavro")
    fields = [{"name": name, "type": kinds.get(name, "string")} for name in FIELDS]
    schema = {"type": "record", "name": "Order", "fields": fields}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    text = STATEFUL.replace('"json"', '"avro"').replace("order.json", "order.avsc")
    path = tmp_path / "orders.toml"
    path.write_text(text.replace(', time = "at"', ""))
    return read_pipeline(path, {})


def decimal(precision: int, scale: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


@pytest.mark.parametrize(
    ("was", "becomes", "other", "told"),
    [
        ("int", "long", "double", "of type integer, and the schema makes it double"),
        # The type of Protobuf's uint64.
        ("long", decimal(20, 0), "string", "of type integer, and the schema makes it string"),
        (decimal(10, 2), decimal(12, 2), decimal(12, 3), "makes it decimal"),
        (array("int"), array("long"), array("string"), "of type list<item: integer>"),
    ],
)
def test_a_type_may_become_one_whose_texts_are_the_same(
    tmp_path: Path, was: object, becomes: object, other: object, told: str
) -> None:
    """Events are known by the text of their columns, and waits by that of their key."""
    for column in ("event_id", "order_id"):
        directory = tmp_path / column
        directory.mkdir()
        bound(avro(directory, **{column: was}))

        wider = avro(directory, **{column: becomes})
        bind_state(wider, stages_of(wider))
        changed = avro(directory, **{column: other})
        with pytest.raises(StageFailed, match=f"the column {column} .*{told}"):
            bind_state(changed, stages_of(changed))


def test_the_groups_of_an_aggregate_keep_their_types_to_the_width(tmp_path: Path) -> None:
    """Spark keeps them with their types, and does not go on with other ones."""
    pipeline = avro(tmp_path, country="int")
    bound(pipeline)
    wider = avro(tmp_path, country="long")

    with pytest.raises(StageFailed, match="country of type int32, and the schema makes it int64"):
        bind_state(wider, stages_of(wider))
    # The note of an older version.
    file = own_directory(pipeline) / "revenue.state.json"
    file.write_text(file.read_text().replace("int32", "integer"))
    bind_state(wider, stages_of(wider))
    changed = avro(tmp_path, country="double")
    with pytest.raises(StageFailed, match=r"country of type .*, and the schema makes it double"):
        bind_state(changed, stages_of(changed))


@pytest.mark.parametrize("lacking", [["time"], ["types"], ["time", "types"]])
def test_a_state_of_which_an_older_version_noted_less_goes_on_and_is_bound_to_all(
    tmp_path: Path, lacking: list[str]
) -> None:
    pipeline = stateful(tmp_path)
    bound(pipeline)
    noted = {file: file.read_bytes() for file in own_directory(pipeline).glob("*.state.json")}
    for file, text in noted.items():
        kept = json.loads(text)
        file.write_text(json.dumps({key: kept[key] for key in kept if key not in lacking}))

    bind_state(pipeline, stages_of(pipeline))

    assert len(noted) == 3
    assert {file: file.read_bytes() for file in noted} == noted


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "No space left on device. Advice: make room and start the run again"),
        (errno.EACCES, "Permission denied. Advice: mend that and start the run again"),
    ],
)
def test_a_checkpoint_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    pipeline = pipeline_of(tmp_path)

    def fail(path: Path, content: bytes) -> bool:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(driver_lock, "create_if_absent", fail)

    with pytest.raises(
        StageFailed, match=f"the checkpoint .* cannot be written: {advice}; it goes"
    ):
        bind(pipeline, "a")
