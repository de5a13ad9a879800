"""A member of a group whose output nobody takes: it stays, and lets rebalances go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.cli.scripted_member import MemberCluster, serve_members

from tarry.cli import outlet as outlet_module
from tarry.cli.formats import PlainRenderer
from tarry.cli.group_reading import GroupLimits, GroupReading
from tarry.cli.reading import Output
from tarry.client.sync import consumer as consumer_module
from tarry.protocol import api_keys

VALUE = b"v" * 100_000
SESSION_MS = 6_000


class StuckReading(GroupReading):
    """Half a second of simulated time goes by each time that nobody takes the output."""

    cluster: MemberCluster
    when_stuck: Callable[[int], None]
    times_stuck = 0

    def _keep_alive(self) -> None:
        self.times_stuck += 1
        self.cluster.run_for(500)
        super()._keep_alive()
        self.when_stuck(self.times_stuck)


@pytest.fixture
def cluster() -> MemberCluster:
    """Two partitions of three large records each; the pipe holds less than one."""
    made = MemberCluster()
    for log in made.topic("orders", partitions=2).logs:
        for _ in range(3):
            log.add(VALUE)
    return made


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    handles = os.pipe()
    yield handles
    for handle in handles:
        os.close(handle)


@pytest.fixture
def reading(
    cluster: MemberCluster, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[StuckReading]:
    serve_members(cluster, monkeypatch)
    monkeypatch.setattr(outlet_module, "IDLE_SECONDS", 0.001)
    settings: dict[str, Any] = {
        "group.id": "g",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 1_000,
        "max.poll.interval.ms": 5_000,
    }
    with (
        consumer_module.Consumer(settings) as consumer,
        os.fdopen(os.dup(pipe[1]), "wb") as output,
    ):
        made = StuckReading(consumer, ["orders"], Output(output, PlainRenderer(b"\n", None)), 10.0)
        made.cluster = cluster
        yield made


class Reader:
    """Takes nothing for so many times, and then all there is whenever it is asked."""

    def __init__(self, handle: int, patience: int) -> None:
        self.handle = handle
        self.patience = patience
        self.got = b""

    def __call__(self, times: int) -> None:
        if times > self.patience:
            self.got += os.read(self.handle, 1 << 20)

    def rest(self) -> bytes:
        os.set_blocking(self.handle, False)
        self.got += os.read(self.handle, 1 << 20)
        return self.got


def test_it_beats_and_fetches_nothing_until_somebody_reads_on(
    reading: StuckReading, cluster: MemberCluster, pipe: tuple[int, int]
) -> None:
    reader = Reader(pipe[0], patience=40)
    reading.when_stuck = reader
    seen_at: list[int] = []

    def note(times: int) -> None:
        reader(times)
        if times in (3, 40):
            seen_at.append(len(cluster.requests(api_keys.FETCH)))

    reading.when_stuck = note

    reading.run(GroupLimits())

    # For 20 seconds, which is more than three sessions and four poll intervals.
    assert len(cluster.requests(api_keys.HEARTBEAT)) >= 15
    assert len(cluster.requests(api_keys.JOIN_GROUP)) == 2
    assert seen_at[0] == seen_at[1]
    assert reader.rest() == (VALUE + b"\n") * 6
    assert cluster.group("g").offsets == {("orders", 0): 3, ("orders", 1): 3}


def test_a_rebalance_goes_on_meanwhile_and_what_nobody_took_is_not_committed(
    reading: StuckReading, cluster: MemberCluster, pipe: tuple[int, int]
) -> None:
    reader = Reader(pipe[0], patience=40)
    committed: list[dict[Any, int]] = []

    def note(times: int) -> None:
        if times == 10:
            cluster.rebalance()
        if times == 39:
            committed.append(dict(cluster.group("g").offsets))
        reader(times)

    reading.when_stuck = note

    reading.run(GroupLimits())

    assert cluster.generation_id == 2
    assert committed == [{}]
    # The lines under way when the partitions went came again with them.
    assert reader.rest().count(VALUE) >= 6
    assert cluster.group("g").offsets == {("orders", 0): 3, ("orders", 1): 3}
