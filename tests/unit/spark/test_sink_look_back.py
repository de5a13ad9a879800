"""Looking back in a log that has more than one call can read, over brokers in simulated time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.client.hand_face import HandDriver
from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen, seeded_random

from tarry.client.core.admin.core import AdminCore
from tarry.client.core.publisher import look_back
from tarry.client.core.publisher.look_back import SeenRange
from tarry.client.core.publisher.requests import PublisherRequests
from tarry.client.face.clock import wall_ms
from tarry.client.settings import ProducerSettings
from tarry.client.sync.publisher import Publisher
from tarry.link.errors import TimedOut
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_cluster import DescribeClusterResponse
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tarry.spark.writing import publishing
from tarry.spark.writing.batch_files import BatchFile
from tarry.spark.writing.directory import SinkDirectory
from tarry.spark.writing.effects import LookBack, LookedBack, Steps, ask
from tarry.spark.writing.plan import EXPIRATION_PARTS, Plan, TaskOutput
from tarry.spark.writing.publishing import EXPIRATION_MS, Publishing
from tarry.spark.writing.steps import SinkSteps

pytest.importorskip("pyarrow")

# A call may take so long, and each fetch of one batch does.
CALL_MS = 1_000
FETCH_MS = 100
FOREIGN = 50
PLACE = "a", 0


class ScriptedPublisher(Publisher):
    """The real publisher over a scripted cluster: only its sockets and its clock are replaced."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        server = str(cluster.brokers[1])
        super().__init__({"bootstrap.servers": server, "default.api.timeout.ms": str(CALL_MS)})
        self._driver.close()
        core = cluster.attach(AdminCore(self.settings, seeded_random(), cluster.now_ms))
        self._driver = HandDriver(cluster, core)  # type: ignore[assignment]
        self._publishing = PublisherRequests(core.connections)


def slow_fetch(cluster: ScriptedCluster, seen: Seen) -> Any:
    answer = cluster.fetch(seen)
    return FETCH_MS, answer[1] if isinstance(answer, tuple) else answer


def ends_with_epochs(cluster: ScriptedCluster, seen: Seen) -> Any:
    answer = cluster.default(seen)
    for topic in answer.topics:
        for partition in topic.partitions:
            log = cluster.topics[topic.name].logs[partition.partition_index]
            partition.leader_epoch = log.leader_epoch
    return answer


class Killed(BaseException):
    """The end of a process, as a test has it."""


def taken(cluster: ScriptedCluster, seen: Seen) -> Any:
    cluster.produce(seen)
    raise Killed


def lost(cluster: ScriptedCluster, seen: Seen) -> Any:
    raise Killed


class LookBackScene:
    """A sink that ends while its micro-batch is sent; others bury that in the log."""

    def __init__(self, path: Path) -> None:
        self.cluster = ScriptedCluster()
        described = DescribeClusterResponse(cluster_id="scripted", controller_id=1)
        self.cluster.rule(api_keys.DESCRIBE_CLUSTER, lambda cluster, seen: described)
        # The topic has no settings: no record waits there.
        settings = DescribeConfigsResponse(results=[DescribeConfigsResult(resource_name="a")])
        self.cluster.rule(api_keys.DESCRIBE_CONFIGS, lambda cluster, seen: settings)
        self.log = self.cluster.topic("a").logs[0]
        self.directory = SinkDirectory(path)
        self.cluster.rule(api_keys.FETCH, slow_fetch)
        self.cluster.rule(api_keys.LIST_OFFSETS, ends_with_epochs)

    def commit(self, *outputs: TaskOutput, expiration_ms: int = EXPIRATION_MS) -> Plan:
        """Commit as a new process does, which bears no time without progress."""
        steps = SinkSteps("q", expiration_ms).commit(0, outputs)
        publisher = ScriptedPublisher(self.cluster)
        return Publishing(self.directory, publisher, 0).run(steps)

    def freeze(self, answer: Any) -> None:
        """Freeze one row, and end while its batch is sent."""
        import pyarrow as pa

        from tarry.client.arrow.finished_batches import BatchPacker

        packer = BatchPacker("a", 1, ProducerSettings({}), 1_000)
        file = BatchFile(self.directory)
        rows = pa.table({"value": [b"ours"]})
        for batch in [*packer.pack(rows, 1_000), *packer.drain()]:
            file.append("a", batch)
        self.cluster.rule(api_keys.PRODUCE, answer)
        with pytest.raises(Killed):
            self.commit(file.finish())
        self.cluster.rule(api_keys.PRODUCE, None)

    def bury(self) -> None:
        for number in range(FOREIGN):
            self.log.add(b"%d" % number)

    def fetches(self) -> int:
        return len(self.cluster.requests(api_keys.FETCH))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LookBackScene:
    # One batch a fetch.
    monkeypatch.setattr(look_back, "PARTITION_BYTES_MAX", 1)
    return LookBackScene(tmp_path)


@pytest.mark.parametrize("answer", [taken, lost])
def test_a_log_that_one_call_cannot_read_through_holds_no_micro_batch_up(
    scene: LookBackScene, answer: Any
) -> None:
    scene.freeze(answer)
    scene.bury()

    scene.commit()

    assert scene.log.values().count(b"ours") == 1
    assert len(scene.log.values()) == FOREIGN + 1


def test_what_was_read_back_is_not_read_again(scene: LookBackScene) -> None:
    scene.freeze(taken)
    scene.bury()

    scene.commit()

    # Some were under way when the time of a call was up.
    calls = FOREIGN * FETCH_MS // CALL_MS
    assert FOREIGN < scene.fetches() <= FOREIGN + 1 + 2 * calls
    assert scene.cluster.now_ms > 3 * CALL_MS


def test_a_log_that_nobody_answers_for_interrupts_the_micro_batch(scene: LookBackScene) -> None:
    scene.freeze(taken)
    scene.bury()
    read = [*range(FOREIGN // 2)]

    def silent(cluster: ScriptedCluster, seen: Seen) -> Any:
        return slow_fetch(cluster, seen) if read and read.pop() + 1 else SILENCE

    scene.cluster.rule(api_keys.FETCH, silent)
    with pytest.raises(TimedOut):
        scene.commit()
    assert not read
    scene.cluster.rule(api_keys.FETCH, slow_fetch)
    scene.commit()

    assert scene.log.values().count(b"ours") == 1


@pytest.mark.parametrize("answer", [taken, lost])
def test_a_look_that_takes_longer_than_a_send_may_wait_is_not_taken_again(
    scene: LookBackScene, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    """Nothing is sent later than a tenth of the expiration after its look began."""
    began_ms = wall_ms()
    monkeypatch.setattr(publishing, "wall_ms", lambda: began_ms + scene.cluster.now_ms)
    scene.freeze(answer)
    scene.bury()

    def bounded(cluster: ScriptedCluster, seen: Seen) -> Any:
        assert scene.fetches() < 10 * FOREIGN, "the log is read again and again"
        return slow_fetch(cluster, seen)

    scene.cluster.rule(api_keys.FETCH, bounded)
    scene.commit(expiration_ms=EXPIRATION_PARTS * FETCH_MS * FOREIGN // 2)

    assert scene.log.values().count(b"ours") == 1


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_log_that_another_leader_has_since_is_read_from_the_plans_end_again(
    scene: LookBackScene, epochs: int
) -> None:
    """It may have cut what was seen."""
    scene.freeze(taken)
    scene.bury()
    stored = scene.directory.read_plan(0)
    assert stored is not None
    counts: list[int] = []

    def looks() -> Steps[list[LookedBack]]:
        first = yield from ask(LookBack(stored.plan, {PLACE: 0}, {}))
        counts.append(scene.fetches())
        scene.log.leader_epoch += epochs
        scene.log.add(b"later")
        second = yield from ask(LookBack(stored.plan, {PLACE: 0}, first))
        counts.append(scene.fetches())
        return [first[PLACE], second[PLACE]]

    publisher = ScriptedPublisher(scene.cluster)
    first, second = Publishing(scene.directory, publisher, 0).run(looks())

    assert len(first.seen.batches) == 1
    assert second.seen == first.seen._replace(end_offset=FOREIGN + 2)
    assert second.leader_epoch == epochs
    assert (counts[1] - counts[0] > FOREIGN) is bool(epochs)


# --- The client's part


def looked_back(scene: LookBackScene, end: int, timeout: float) -> Any:
    publisher = ScriptedPublisher(scene.cluster)
    ids = {"a": scene.cluster.topics["a"].topic_id}
    return publisher.look_back({PLACE: (0, end)}, ids, 1, timeout)[PLACE]


def test_a_range_that_the_time_is_too_short_for_is_told_as_far_as_it_was_read(
    scene: LookBackScene,
) -> None:
    scene.bury()

    part = looked_back(scene, FOREIGN, 1.0)
    whole = looked_back(scene, FOREIGN, 60.0)
    scene.cluster.rule(api_keys.FETCH, lambda cluster, seen: SILENCE)
    nothing = looked_back(scene, FOREIGN, 1.0)

    assert 3 < part.end_offset < FOREIGN
    assert whole.end_offset == FOREIGN
    assert isinstance(nothing, TimedOut)


def test_what_was_read_counts_where_the_cluster_is_away_behind_it(scene: LookBackScene) -> None:
    scene.bury()
    scene.cluster.rule(
        api_keys.FETCH,
        lambda cluster, seen: CUT if scene.fetches() > 5 else slow_fetch(cluster, seen),
    )
    scene.cluster.script(api_keys.METADATA, *[lambda cluster, seen: cluster.metadata(seen)] * 2)
    scene.cluster.rule(api_keys.METADATA, lambda cluster, seen: SILENCE)

    part = looked_back(scene, FOREIGN, 2.0)

    assert part == SeenRange(5)
