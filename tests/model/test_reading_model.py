"""A consumer in front of brokers that lag, forget, fail and abort, against what their logs say.

A seed draws transactions, followers that come and go, sessions that are evicted, connections that
are cut, pauses and small fetches.  When all has healed, each partition was handed out once and in
order: everything that is no marker, or only what was committed.  Mistakes planted into the client
are found.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest
from tests.support.client.consumer_scene import consumer
from tests.support.client.fetch_cluster import ABORT, COMMIT, FetchCluster, TransactionalLog
from tests.support.client.scripted_cluster import CUT, ScriptedCluster, Seen

from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.core.consumer.fetch_exchange import FetchExchange
from tarry.client.core.consumer.fetcher import Fetcher
from tarry.client.core.consumer.position import PartitionPosition
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.records.aborted import AbortedTransactions

SEEDS: Final = range(30)
STEPS: Final = 60
PARTITIONS: Final = 2
PRODUCERS: Final = (7, 8, 9)


class Reading:
    """One run of a seed; `wrong` is what does not fit, empty if nothing does."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.reads_committed = random.random() < 0.6
        has_racks = random.random() < 0.6
        self.cluster = FetchCluster(brokers=3, gives_sessions=random.random() < 0.7)
        if has_racks:
            self.cluster.racks = {1: "a", 2: "b", 3: "c"}
            self.cluster.followers = {2: 1_000_000}
        self.logs = [TransactionalLog(), TransactionalLog()]
        self.cluster.topic("t", PARTITIONS).logs = list(self.logs)
        # By partition: value, producer (-1: plain) and the transaction's outcome, once known.
        self.written: list[list[list[Any]]] = [[], []]
        self.read: list[list[bytes | None]] = [[], []]
        self.core: ConsumerCore = consumer(
            self.cluster,
            isolation_level="read_committed" if self.reads_committed else "read_uncommitted",
            client_rack="b" if has_racks else "",
            max_partition_fetch_bytes=random.choice([100, 300, 5_000]),
            metadata_max_age_ms=random.choice([3_000, 300_000]),
            auto_offset_reset="latest",
        )
        self.places = [("t", index) for index in range(PARTITIONS)]
        self.core.assign(self.places)
        for place in self.places:
            self.core.seek(place, 0)

    def run(self) -> str:
        """Take the steps; return what is wrong."""
        try:
            for _ in range(STEPS):
                self.step()
            self.heal()
            self.read_to_the_end()
        except ClientError as error:
            return f"{type(error).__name__}: {error}"
        for index in range(PARTITIONS):
            wanted = self.wanted(index)
            if self.read[index] != wanted:
                return f"t-{index}: {self.read[index]} instead of {wanted}"
        return ""

    def step(self) -> None:
        random, cluster = self.random, self.cluster
        drawn = random.random()
        if drawn < 0.4:
            self.write(random.randrange(PARTITIONS))
        elif drawn < 0.5:
            self.end_one(random.randrange(PARTITIONS), random.choice([ABORT, COMMIT]))
        elif drawn < 0.55:
            cluster.sessions.clear()
        elif drawn < 0.6:
            cluster.cut(random.choice([1, 2]))
        elif drawn < 0.65 and cluster.followers:
            ends = [log.end_offset for log in self.logs]
            cluster.followers[2] = random.choice([0, min(ends), 1_000_000])
        elif drawn < 0.7:
            cluster.script(api_keys.FETCH, _cut)
        elif drawn < 0.75:
            self.core.pause([random.choice(self.places)])
        elif drawn < 0.85:
            self.core.resume(self.places)
        else:
            cluster.run_for(random.choice([1, 20, 700, 4_000]))
        self.take()

    def write(self, index: int) -> None:
        log, random = self.logs[index], self.random
        values = [b"%d" % (len(self.written[index]) + n) for n in range(random.randint(1, 3))]
        if random.random() < 0.3:
            producer_id = -1
            log.add(*values)
        else:
            producer_id = random.choice(PRODUCERS)
            log.write(producer_id, *values)
        self.written[index] += [[value, producer_id, None] for value in values]

    def end_one(self, index: int, kind: int) -> None:
        log = self.logs[index]
        if log.open:
            producer_id = self.random.choice(sorted(log.open))
            log.end(producer_id, kind)
            for row in self.written[index]:
                if row[1] == producer_id and row[2] is None:
                    row[2] = kind

    def take(self) -> None:
        self.cluster.run_for(self.random.choice([0, 2, 10]))
        for group in self.core.take(self.random.choice([1, 3, 500]), self.cluster.now_ms):
            self.read[group.partition] += [record.value for record in group.records]

    def heal(self) -> None:
        for index in range(PARTITIONS):
            while self.logs[index].open:
                self.end_one(index, self.random.choice([ABORT, COMMIT]))
        self.core.resume(self.places)
        if self.cluster.followers:
            self.cluster.followers[2] = 1_000_000

    def read_to_the_end(self) -> None:
        for _ in range(400):
            ends = [self.core.position(place).position for place in self.places]
            if ends == [log.end_offset for log in self.logs]:
                return
            self.cluster.run_for(500)
            self.take()

    def wanted(self, index: int) -> list[bytes]:
        return [
            value
            for value, producer_id, kind in self.written[index]
            if not self.reads_committed or producer_id < 0 or kind == COMMIT
        ]


def _cut(cluster: ScriptedCluster, seen: Seen) -> Any:
    return CUT


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_read_once_in_order_and_as_the_isolation_level_says(seed: int) -> None:
    assert Reading(seed).run() == ""


# --- Planted mistakes


def hand_out_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        AbortedTransactions, "leaves_out", lambda self, data, position, header: header.is_control
    )


def let_a_marker_end_no_transaction(patch: pytest.MonkeyPatch) -> None:
    honest = AbortedTransactions.leaves_out

    def leaves_out(self: AbortedTransactions, data: bytes, position: int, header: Any) -> bool:
        return bool(header.is_control) or honest(self, data, position, header)

    patch.setattr(AbortedTransactions, "leaves_out", leaves_out)


def believe_a_replica_that_lags(patch: pytest.MonkeyPatch) -> None:
    def leave_replica(self: Fetcher, position: PartitionPosition, reason: str, now: int) -> None:
        assert self.when_reset is not None
        if reason == "OFFSET_OUT_OF_RANGE":
            self.when_reset(position)
        else:
            self.replicas.leave(position, now)

    patch.setattr(Fetcher, "leave_replica", leave_replica)


def tell_a_session_nothing_of_offsets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tarry.client.core.consumer.session._is_same", lambda one, other: True)


def ask_for_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    honest = FetchExchange.build

    def build(self: FetchExchange, version: int) -> Any:
        request: Any = honest(self, version)
        request.isolation_level = 0
        return request

    patch.setattr(FetchExchange, "build", build)


# A seed that finds each.
PLANTED: Final[dict[Callable[[pytest.MonkeyPatch], None], int]] = {
    hand_out_what_was_aborted: 1,
    let_a_marker_end_no_transaction: 3,
    believe_a_replica_that_lags: 57,
    tell_a_session_nothing_of_offsets: 0,
    ask_for_what_is_not_committed: 1,
}


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    assert Reading(PLANTED[plant]).run(), plant.__name__
