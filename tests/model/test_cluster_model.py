"""The laws of the cluster's state, after every step of random histories.

Replaying the records into an empty state gives the live state; so does a snapshot; the pending
view says what the state will say once everything is applied; and the embedded store brings back
what was durable, with more only if it was written.
"""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tarry.base.doors import LogFile
from tarry.base.errors import StorageError
from tarry.base.settings import Settings
from tarry.cluster.embedded import EmbeddedStore, open_store
from tarry.cluster.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.producer_ids import decide_reserve_producer_ids
from tarry.cluster.records import (
    EVERY_BROKER,
    BrokerConfigChanged,
    ConfigChanged,
    MetadataRecord,
    TopicRemoved,
    decode_record,
)
from tarry.cluster.state import ClusterState, ClusterView
from tarry.cluster.topic_decisions import (
    TopicWanted,
    decide_create_topics,
    decide_delete_topics,
)
from tarry.log.logs import Logs
from tarry.records.record import decode_records
from tarry.simulation.disk import SimulatedDisk

NAMES = ["a", "a.b", "a_b", ".."]
WALL_MS = 1_800_000_000_000
BROKER_SETTINGS = Settings({"num.partitions": "2"})

names = st.sampled_from(NAMES)


def views_agree(one: ClusterView, other: ClusterView) -> bool:
    """Whether two views answer every question of decisions alike."""
    if one.producer_id_end != other.producer_id_end or one.broker_ids != other.broker_ids:
        return False
    for broker_id in (1, EVERY_BROKER):
        if one.configs_of_broker(broker_id) != other.configs_of_broker(broker_id):
            return False
    for name in NAMES:
        mine, theirs = one.topic(name), other.topic(name)
        if (mine is None) != (theirs is None):
            return False
        if mine is not None and theirs is not None:
            if mine.record() != theirs.record():
                return False
            if one.topic_by_id(mine.topic_id) is not mine:
                return False
        if one.topic_like(name) != other.topic_like(name):
            return False
        if one.is_being_deleted(name) != other.is_being_deleted(name):
            return False
    return True


class ClusterHistory(RuleBasedStateMachine):
    """Decisions, flushes, failed writes, crashes, in any order."""

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.given_ids: list[int] = []
        self.durable: list[MetadataRecord] = []
        self.start()

    def start(self) -> None:
        logs = Logs(self.disk)
        logs.load()
        self.store: EmbeddedStore = open_store(
            logs,
            broker_id=1,
            random=self.random,
            now_wall_ms=WALL_MS,
            snapshot_bytes_min=self.random.choice([500, 3_000, 1 << 30]),
        )
        # What is appended, for the law of the pending view.
        self.appended: list[tuple[int, list[MetadataRecord]]] = []

    def append(self, records: list[MetadataRecord], *, commits: bool) -> None:
        if records:
            self.appended.append((self.store.append(records, WALL_MS), records))
        if commits:
            self.commit()

    @rule(wanted=st.lists(names, min_size=1, max_size=3), commits=st.booleans())
    def create(self, wanted: list[str], commits: bool) -> None:
        topics = [TopicWanted(name) for name in wanted]
        decision = decide_create_topics(self.store.latest, topics, BROKER_SETTINGS, self.random)
        self.append(decision.records, commits=commits)

    @rule(wanted=st.lists(names, min_size=1, max_size=2), commits=st.booleans())
    def delete(self, wanted: list[str], commits: bool) -> None:
        decision = decide_delete_topics(self.store.latest, [(name, None) for name in wanted])
        self.append(decision.records, commits=commits)

    @precondition(lambda self: self.store.state.deleted_topics)
    @rule(commits=st.booleans())
    def remove(self, commits: bool) -> None:
        for topic_id in list(self.store.state.deleted_topics):
            deleted = self.store.state.deleted_topics[topic_id]
            if self.store.latest.is_being_deleted(deleted.name):
                self.append([TopicRemoved(topic_id=topic_id)], commits=False)
        if commits:
            self.commit()

    @rule(name=names, value=st.sampled_from(["1", "2"]))
    def configure(self, name: str, value: str) -> None:
        topic = self.store.latest.topic(name)
        if topic is not None:
            changed = ConfigChanged(topic_id=topic.topic_id, configs={"retention.ms": value})
            self.append([changed], commits=False)

    @rule(name=names, count=st.integers(1, 5), commits=st.booleans())
    def grow(self, name: str, count: int, commits: bool) -> None:
        decision = decide_create_partitions(self.store.latest, [GrowthWanted(name, count)])
        self.append(decision.records, commits=commits)

    @rule(broker_id=st.sampled_from([1, EVERY_BROKER]), values=st.lists(st.just("1"), max_size=1))
    def configure_broker(self, broker_id: int, values: list[str]) -> None:
        configs = dict.fromkeys(["message.max.bytes"] * len(values), "1")
        self.append([BrokerConfigChanged(broker_id=broker_id, configs=configs)], commits=False)

    @rule(commits=st.booleans())
    def reserve(self, commits: bool) -> None:
        self.append(decide_reserve_producer_ids(self.store.latest), commits=commits)

    @rule()
    def take(self) -> None:
        producer_id = self.store.producer_ids.take()
        if producer_id >= 0:
            assert not self.given_ids or producer_id > self.given_ids[-1]
            self.given_ids.append(producer_id)

    @rule()
    def write(self) -> None:
        self.store.log.write()

    @rule()
    def commit(self) -> None:
        log = self.store.log
        log.write()
        files: list[LogFile] = []
        directories: dict[str, None] = {}
        offset = log.collect_flush(files, directories)
        self.disk.flush(files, list(directories))
        log.flushed(offset)
        applied = self.store.flushed(offset)
        assert applied == [record for _, batch in self.appended for record in batch]
        self.appended = []

    @precondition(lambda self: self.store.log.written_end_offset < self.store.log.log_end_offset)
    @rule()
    def fail_to_write(self) -> None:
        written = self.store.log.written_end_offset
        self.disk.fail_writes()
        try:
            self.store.log.write()
        except StorageError:
            self.disk.heal()
        assert self.store.log.log_end_offset == written
        self.store.on_write_failed()
        self.appended = [each for each in self.appended if each[0] <= written]

    @rule(is_power_lost=st.booleans())
    def crash(self, is_power_lost: bool) -> None:
        before = self.store.state.snapshot()
        durable_topics = list(self.store.state.topics)
        if is_power_lost:
            self.disk.crash()
        else:
            self.disk.kill()
        pending = bool(self.appended)
        self.start()
        if not pending:
            assert list(self.store.state.topics) == durable_topics
            assert len(self.store.state.snapshot()) == len(before)
        assert self.store.producer_ids.take() == -1
        assert not self.given_ids or self.store.state.producer_id_end > self.given_ids[-1]

    def expected(self) -> ClusterState:
        """The durable state with everything appended applied."""
        state = ClusterState()
        for record in self.store.state.snapshot():
            state.apply(record)
        for _, batch in self.appended:
            for record in batch:
                state.apply(record)
        return state

    @invariant()
    def the_pending_view_says_what_will_be(self) -> None:
        assert views_agree(self.store.latest, self.expected())

    @invariant()
    def a_replay_gives_the_live_state(self) -> None:
        log = self.store.log
        state = ClusterState()
        offset: int = log.log_start_offset
        end = log.end_position()
        while offset < self.store.applied_end_offset:
            region = log.read(offset, end, 1, True)
            assert region is not None
            for stored in decode_records(
                region.file.read(region.position, region.size), size_max=1 << 20
            ):
                if stored.offset < self.store.applied_end_offset:
                    assert stored.value is not None
                    state.apply(decode_record(stored.value))
                offset = stored.offset + 1
        assert state.snapshot() == self.store.state.snapshot()


TestClusterHistory = ClusterHistory.TestCase
TestClusterHistory.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
