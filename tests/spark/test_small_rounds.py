"""Rounds of an auditor over the sink and the archive, whose driver or broker dies in each."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from tests.support.spark.small_driver import PARTITIONS, SOURCE, Offsets, SmallDriver
from tests.support.spark.small_rounds import SmallRounds, Step

from tarry.testing import Tarry

# Apache Kafka never dies, so most of its rounds would tell nothing that Tarry's do not.
ROUNDS = {"tarry": 10, "kafka": 4}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["tarry", "kafka"])
def test_each_record_is_accounted_for_whatever_dies(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    bootstrap = request.getfixturevalue("apache_kafka") if kind == "kafka" else ""
    rounds = SmallRounds(tmp_path, seed=7, bootstrap=bootstrap)
    try:
        rounds.start()
        flaws = [rounds.round(is_finished=False) for _ in range(ROUNDS[kind])]
        assert rounds.finish(), told(tmp_path)
        flaws.append(rounds.flaws())
    finally:
        rounds.close()

    assert flaws == [[]] * (ROUNDS[kind] + 1), told(tmp_path)
    # A driver that comes to its end before it is killed is no death.
    assert rounds.met >= 0.7 * ROUNDS[kind], rounds.deaths


def told(folder: Path) -> str:
    """The end of what all drivers have told, for a failure."""
    return (folder / "drivers.log").read_text(errors="replace")[-4000:]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("mistake", "step", "flaw"),
    [
        ("manifest-first", ("commit", True, 1), "the driver does not come to its end"),
        ("sequences-anew", ("SendRound", True, 3), "300 in, "),
        ("ends-late", ("SendRound", True, 7), "the driver does not come to its end"),
        ("mark-first", ("MarkDone", True, 1), "300 in, "),
    ],
)
def test_a_planted_mistake_is_found(tmp_path: Path, mistake: str, step: Step, flaw: str) -> None:
    with Tarry() as broker:
        rounds = SmallRounds(tmp_path, seed=7, bootstrap=broker.bootstrap, mistake=mistake)
        rounds.start()
        flaws = rounds.round(step=step)

    assert rounds.met == 1, told(tmp_path)
    assert any(flaw in one for one in flaws), flaws


class GroupIsProgress(SmallDriver):
    """A driver that takes a group's offsets for its progress; they trail by a micro-batch, as those
    that a query commits so that tools see its lag."""

    def __init__(self, broker: Tarry, folder: Path) -> None:
        super().__init__(broker.bootstrap, folder)
        self.broker = broker

    def begin_of(self, batch_id: int) -> Offsets:
        known = self.broker.admin.group_offsets(["job"])["job"]
        assert isinstance(known, dict)
        begin = dict.fromkeys(((SOURCE, index) for index in range(PARTITIONS)), 0)
        return begin | {place: one.offset for place, one in known.items()}

    def tell(self, offsets: Offsets) -> None:
        self.broker.admin.commit_group_offsets("job", offsets)


@pytest.mark.parametrize("is_planted", [False, True])
def test_group_offsets_that_are_taken_for_progress_are_found(
    tmp_path: Path, is_planted: bool
) -> None:
    with Tarry() as broker:
        rounds = SmallRounds(tmp_path, seed=7, bootstrap=broker.bootstrap)
        rounds.start()
        for _ in range(2):
            rounds.send()
            driver = SmallDriver(broker.bootstrap, tmp_path)
            (GroupIsProgress(broker, tmp_path) if is_planted else driver).run()
        flaws = rounds.flaws()

    assert bool(flaws) == is_planted
    assert all("clean" in flaw for flaw in flaws)
