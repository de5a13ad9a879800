"""The laws of the cluster's state, after every step of random histories.

Replaying the records into an empty state gives the live state; so does a snapshot; the view says
what the state will say once everything is applied; every change ends once and in order; and the
embedded store brings back what was durable, with more only if it was written.
"""

from __future__ import annotations

from functools import partial

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.metadata_stores import EmbeddedSubject, GivenChange

from tarry.base.settings import Settings
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.producer_ids import ProducerIds
from tarry.cluster.decisions.topic_decisions import (
    TopicChange,
    TopicIds,
    TopicWanted,
    decide_create_topics,
    decide_delete_topics,
)
from tarry.cluster.state.records import (
    EVERY_BROKER,
    BrokerConfigChanged,
    ConfigChanged,
    MetadataRecord,
    TopicRemoved,
    decode_record,
)
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change
from tarry.records.record import decode_records

NAMES = ["a", "a.b", "a_b", ".."]
BROKER_SETTINGS = Settings({"num.partitions": "2"})

names = st.sampled_from(NAMES)


def views_agree(one: ClusterState, other: ClusterState) -> bool:
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
    """Changes, flushes, failed writes, crashes, in any order."""

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.subject = EmbeddedSubject(seed=seed)
        self.random = self.subject.random
        self.given_ids: list[int] = []
        self.on_start()

    def on_start(self) -> None:
        self.store = self.subject.store
        self.store.snapshot_bytes_min = self.random.choice([500, 3_000, 1 << 30])
        self.ids = ProducerIds(self.store)
        # Requests that have not ended.
        self.pending: list[Change] = []
        self.records: dict[Change, list[MetadataRecord]] = {}

    def change(self, change: Change, *, commits: bool) -> None:
        self.records[change] = change.decide(self.store.view)
        self.store.change(change)
        if not change.is_ended:
            self.pending.append(change)
        if commits:
            self.commit()

    @rule(wanted=st.lists(names, min_size=1, max_size=3), commits=st.booleans())
    def create(self, wanted: list[str], commits: bool) -> None:
        decide = partial(
            decide_create_topics,
            wanted=[TopicWanted(name) for name in wanted],
            settings=BROKER_SETTINGS,
            ids=TopicIds(self.random),
        )
        self.change(TopicChange(decide), commits=commits)

    @rule(wanted=st.lists(names, min_size=1, max_size=2), commits=st.booleans())
    def delete(self, wanted: list[str], commits: bool) -> None:
        decide = partial(decide_delete_topics, wanted=[(name, None) for name in wanted])
        self.change(TopicChange(decide), commits=commits)

    @precondition(lambda self: self.store.state.deleted_topics)
    @rule(commits=st.booleans())
    def remove(self, commits: bool) -> None:
        for topic_id in list(self.store.state.deleted_topics):
            if topic_id in self.store.view.deleted_topics:
                self.change(GivenChange(TopicRemoved(topic_id=topic_id)), commits=False)
        if commits:
            self.commit()

    @rule(name=names, value=st.sampled_from(["1", "2"]))
    def configure(self, name: str, value: str) -> None:
        topic = self.store.view.topic(name)
        if topic is not None:
            record = ConfigChanged(topic_id=topic.topic_id, configs={"retention.ms": value})
            self.change(GivenChange(record), commits=False)

    @rule(name=names, count=st.integers(1, 5), commits=st.booleans())
    def grow(self, name: str, count: int, commits: bool) -> None:
        decide = partial(decide_create_partitions, wanted=[GrowthWanted(name, count)])
        self.change(TopicChange(decide), commits=commits)

    @rule(broker_id=st.sampled_from([1, EVERY_BROKER]), values=st.lists(st.just("1"), max_size=1))
    def configure_broker(self, broker_id: int, values: list[str]) -> None:
        configs = dict.fromkeys(["message.max.bytes"] * len(values), "1")
        record = BrokerConfigChanged(broker_id=broker_id, configs=configs)
        self.change(GivenChange(record), commits=False)

    @rule(commits=st.booleans())
    def take_producer_id(self, commits: bool) -> None:
        producer_id = self.ids.take()
        if producer_id >= 0:
            assert not self.given_ids or producer_id > self.given_ids[-1]
            self.given_ids.append(producer_id)
            return
        reservation = self.ids.reserve()
        if reservation not in self.records:
            self.records[reservation] = reservation.decide(self.store.state)
            self.pending.append(reservation)
        if commits:
            self.commit()

    @rule()
    def write(self) -> None:
        self.subject.write()

    @rule()
    def commit(self) -> None:
        ends = self.subject.ends
        ends.applied.clear()
        self.subject.settle()
        told = [(records, change) for _, records, change in ends.applied]
        assert told == [(self.records[change], change) for change in self.pending]
        assert all(change.is_ended and not change.refusal for change in self.pending)
        versions = [version for version, _, _ in ends.applied]
        assert versions == sorted(versions)
        self.pending = []

    @precondition(lambda self: self.store.log.written_end_offset < self.store.log.log_end_offset)
    @rule()
    def fail_to_write(self) -> None:
        self.subject.ends.refused.clear()
        self.subject.lose()
        lost = self.subject.ends.refused
        kept = len(self.pending) - len(lost)
        assert lost
        assert lost == self.pending[kept:]
        assert all(change.is_ended and change.refusal for change in lost)
        self.pending = self.pending[:kept]

    @rule(is_power_lost=st.booleans())
    def crash(self, is_power_lost: bool) -> None:
        before = self.store.state.snapshot()
        durable_topics = list(self.store.state.topics)
        was_pending = bool(self.pending)
        if is_power_lost:
            self.subject.restart()
        else:
            self.subject.restart_process()
        self.on_start()
        if not was_pending:
            assert list(self.store.state.topics) == durable_topics
            assert len(self.store.state.snapshot()) == len(before)
        assert self.ids.take() == -1
        assert not self.given_ids or self.store.state.producer_id_end > self.given_ids[-1]

    def expected(self) -> ClusterState:
        """The durable state with everything appended applied."""
        state = ClusterState()
        for record in self.store.state.snapshot():
            state.apply(record)
        for change in self.pending:
            for record in self.records[change]:
                state.apply(record)
        return state

    @invariant()
    def the_view_says_what_will_be(self) -> None:
        assert views_agree(self.store.view, self.expected())

    @invariant()
    def a_replay_gives_the_live_state(self) -> None:
        log = self.store.log
        state = ClusterState()
        offset: int = log.log_start_offset
        end = log.end_position()
        while offset < self.store.version:
            region = log.read(offset, end, 1, True)
            assert region is not None
            for stored in decode_records(
                region.file.read(region.position, region.size), size_max=1 << 20
            ):
                if stored.offset < self.store.version:
                    assert stored.value is not None
                    state.apply(decode_record(stored.value))
                offset = stored.offset + 1
        assert state.snapshot() == self.store.state.snapshot()


TestClusterHistory = ClusterHistory.TestCase
TestClusterHistory.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
