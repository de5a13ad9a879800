"""A record whose CRC is wrong: no reader passes over it, none takes it, and there is a way on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.client import CorruptRecords
from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.directory import STAGED, ArchiveDirectory
from tarry.spark.archive.verify import verify
from tarry.spark.pipeline.faults import fault_of
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.loss import within_logs
from tarry.spark.reading.plan import ReadRange
from tarry.spark.reading.rows import RowReader
from tarry.testing import Tarry

TOPIC = "orders"
VALUES = (b"the first", b"the broken one", b"the last")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Tarry]:
    """A broker whose log has three batches, the second one with a byte that was never written."""
    with Tarry({"log.dirs": str(tmp_path / "logs")}) as tarry:
        tarry.topic(TOPIC, retention_ms=-1)
        for value in VALUES:
            tarry.send(TOPIC, value)
        (path,) = (tmp_path / "logs" / f"{TOPIC}-0").glob("*.log")
        content = path.read_bytes()
        at = content.index(VALUES[1])
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"T")
        yield tarry


@pytest.mark.parametrize("fails_on_loss", [True, False])
def test_a_task_fails_also_where_losses_are_left_out(broker: Tarry, *, fails_on_loss: bool) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    reader = RowReader(settings, ("value",), fails_on_loss=fails_on_loss)
    seen: list[object] = []

    with pytest.raises(CorruptRecords) as failure:
        for batch in reader.batches({(TOPIC, 0): (0, 3)}):
            seen += [row["value"] for row in batch.to_pylist()]

    assert seen in ([], [VALUES[0]])
    raised = RuntimeError(f"Job\ntarry.client.errors.CorruptRecords: {failure.value}\n\tat x")
    told = fault_of(raised).sentence
    assert "orders [0] cannot be read at offset 1, " in told
    assert "`tarry topics delete-records orders -p 0 --before 2`, and start the run" in told


def test_an_archive_takes_no_round_of_it_and_goes_on_where_it_was_given_up(
    broker: Tarry, tmp_path: Path
) -> None:
    path = tmp_path / "lake"

    def run(*, skips_lost: bool) -> tuple[int, int]:
        options = ArchiveOptions(
            {"bootstrap.servers": broker.bootstrap}, fail_on_data_loss=not skips_lost
        )
        (*_, summary) = archive(None, TopicChoice(names=(TOPIC,)), path, options)
        return summary.records, summary.lost

    for skips_lost in (False, True):
        with pytest.raises(CorruptRecords):
            run(skips_lost=skips_lost)
        assert ArchiveDirectory(path).numbers() == []
        assert list((path / STAGED).iterdir()) == []
    # The sentence promises this.
    broker.admin.delete_records({(TOPIC, 0): 2})

    assert run(skips_lost=True) == (1, 0)
    assert verify(path, {"bootstrap.servers": broker.bootstrap}).faults == []


def test_what_was_given_up_is_a_loss_that_is_told(broker: Tarry) -> None:
    broker.admin.delete_records({(TOPIC, 0): 2})

    with closing(LiveCluster({"bootstrap.servers": broker.bootstrap})) as cluster:
        places = [(TOPIC, 0)]
        wanted = [ReadRange(TOPIC, 0, 1, 3)]
        readable, lost = within_logs(wanted, cluster.starts(places), cluster.ends(places))

    assert readable == [ReadRange(TOPIC, 0, 2, 3)]
    assert [str(one) for one in lost] == ["orders [0] from offset 1 to 2 (the log starts at 2)"]
