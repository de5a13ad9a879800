"""The laws of a group, after every step of random histories.

Replaying the durable records gives the durable part of the live state; a round keeps its
invariants (both are checked by the scene at every step); every request that is not answered waits
in exactly one place; and once nobody asks any more, everybody is answered and nothing is left.
"""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.group_scene import BOTH, RANGE, Scene, replayed

from tarry.base import errors
from tarry.group.classic.requests import LeavingMember, SyncAnswer
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    EMPTY,
    STABLE,
)
from tarry.group.offsets.appends import OffsetsAppend, TombstonesAppend
from tarry.group.offsets.requests import CommitAnswer, CommitPartition
from tarry.group.requests import GroupSettings

ROUNDROBIN = BOTH[1:]
CHANGED = (("range", b"changed"),)

protocols = st.sampled_from([BOTH, BOTH, RANGE, ROUNDROBIN, CHANGED, ()])
instances = st.sampled_from([None, None, "a", "b"])
picks = st.integers(0, 30)
# Mostly short: a group that is always dying shows little.
steps_ms = st.sampled_from([0, 1, 500, 500, 500, 3_000, 3_000, 6_000, 10_000, 60_000])
topics = st.sampled_from(["t", "u"])


class GroupHistory(RuleBasedStateMachine):
    """Members that come, go, fall silent and repeat themselves; a log that is slow or fails."""

    @initialize(
        size_max=st.sampled_from([2, 3, 2**31 - 1]),
        delay_ms=st.sampled_from([0, 3_000]),
        start=st.sampled_from(["nothing", "joined", "works", "works"]),
    )
    def begin(self, size_max: int, delay_ms: int, start: str) -> None:
        self.scene = Scene(
            GroupSettings(
                group_max_size=size_max,
                group_initial_rebalance_delay_ms=delay_ms,
                offsets_retention_ms=400_000,
            )
        )
        # Requests whose connection is gone with the broker.
        self.lost: set[int] = set()
        if start != "nothing":
            self.scene.join(version=3, session_ms=30_000)
            self.scene.join("", "a")
            if size_max > 2:
                self.scene.join(version=3)
            self.scene.advance(2 * delay_ms)
            assert self.scene.group.round.phase == COMPLETING_REBALANCE
        if start == "works":
            self.scene.sync_all()
            assert self.scene.group.round.phase == STABLE

    def known_id(self, pick: int) -> str:
        """A member, an id that was given out, or somebody whom nobody knows."""
        now = self.scene.group.round
        ids = [*now.members, *now.pending_members, "stranger", ""]
        return ids[pick % len(ids)]

    @rule(
        instance_id=instances,
        protocols=protocols,
        version=st.sampled_from([3, 8, 9]),
        session_ms=st.sampled_from([6_000, 20_000]),
        rebalance_ms=st.sampled_from([5_000, 30_000]),
    )
    def join_new(
        self, instance_id: str | None, protocols: object, version: int, **times: int
    ) -> None:
        self.scene.join("", instance_id, protocols=protocols, version=version, **times)

    @rule(pick=picks, protocols=protocols, version=st.sampled_from([8, 9]), right=st.booleans())
    def join_known(self, pick: int, protocols: object, version: int, right: bool) -> None:
        member_id = self.known_id(pick)
        member = self.scene.group.round.members.get(member_id)
        instance_id = member.instance_id if member is not None and right else None
        self.scene.join(member_id, instance_id, protocols=protocols, version=version)

    @rule(pick=picks, off=st.sampled_from([0, 0, 0, -1, 1]), given=st.binary(max_size=2))
    def sync(self, pick: int, off: int, given: bytes) -> None:
        now = self.scene.group.round
        assignments = tuple((each, given + each.encode()) for each in [*now.members, "stranger"])
        self.scene.sync(
            self.known_id(pick), now.generation_id + off, assignments=assignments[pick % 2 :]
        )

    @rule(protocols=st.sampled_from([BOTH, CHANGED]))
    def everybody_joins_again(self, protocols: object) -> None:
        for member in list(self.scene.group.round.members.values()):
            if member.member_id in self.scene.group.round.members:
                self.scene.join(member.member_id, member.instance_id, protocols=protocols)

    @rule()
    def followers_sync(self) -> None:
        now = self.scene.group.round
        for member_id in [each for each in now.members if each != now.leader_id]:
            self.scene.sync(member_id)

    @rule()
    def sync_everybody(self) -> None:
        if self.scene.group.round.leader_id is not None:
            self.scene.sync_all()

    @rule(pick=picks, off=st.sampled_from([0, 0, -1]))
    def heartbeat(self, pick: int, off: int) -> None:
        generation_id = self.scene.group.round.generation_id + off
        self.scene.heartbeat(self.known_id(pick), generation_id)

    @rule(first=picks, second=picks, instance_id=instances)
    def leave(self, first: int, second: int, instance_id: str | None) -> None:
        self.scene.leave(
            LeavingMember(self.known_id(first)),
            LeavingMember("", instance_id),
            LeavingMember(self.known_id(second), reason="closed"),
        )

    @rule(pick=picks, off=st.sampled_from([0, 0, -1, -100]), topic=topics, offset=st.integers(0, 9))
    def commit_offsets(self, pick: int, off: int, topic: str, offset: int) -> None:
        now = self.scene.group.round
        generation_id = -1 if off == -100 else now.generation_id + off
        member_id = self.known_id(pick)
        ticket = self.scene.commit_offsets(
            member_id,
            generation_id,
            partitions=(
                CommitPartition(topic, 0, offset),
                CommitPartition(topic, 1, offset, metadata="x" * 5_000),
                CommitPartition("gone", 0, 1, error_code=errors.UNKNOWN_TOPIC_OR_PARTITION),
            ),
        )
        answer = self.scene.answers.get(ticket)
        if answer is not None:
            assert isinstance(answer, CommitAnswer)
            # Nothing of an older generation, or of who is no member, is taken.
            if answer.partition_error_codes[0] == errors.NONE:
                is_member = member_id in now.members and generation_id == now.generation_id
                assert is_member or (generation_id < 0 and now.phase == EMPTY)

    @rule(elapsed_ms=steps_ms)
    def time_passes(self, elapsed_ms: int) -> None:
        self.scene.advance(elapsed_ms)

    @rule(elapsed_ms=steps_ms)
    def the_broker_stalls(self, elapsed_ms: int) -> None:
        members_before = list(self.scene.group.round.members)
        self.scene.stall(elapsed_ms)
        self.scene.advance(0)
        assert list(self.scene.group.round.members) == members_before

    @rule()
    def the_log_is_slow(self) -> None:
        self.scene.holds = True

    @rule(instance_id=st.sampled_from(["a", "b"]), version=st.sampled_from([8, 9]))
    def a_static_member_comes_back_twice_while_the_log_is_slow(
        self, instance_id: str, version: int
    ) -> None:
        self.scene.holds = True
        self.scene.join("", instance_id, version=version)
        self.scene.join("", instance_id, version=version)

    @rule(count=st.sampled_from([1, None]))
    def the_log_goes_on(self, count: int | None) -> None:
        self.scene.commit(count)
        self.scene.holds = count is not None

    @rule()
    def an_append_fails(self) -> None:
        if self.scene.waiting:
            self.scene.fail()

    @rule()
    def the_broker_dies(self) -> None:
        self.lost.update(self.open_tickets())
        self.scene.restart()

    @rule()
    def the_partition_moves_away_and_back(self) -> None:
        self.scene.unload()
        self.scene.restart()
        assert self.open_tickets() == self.lost

    @rule()
    def delete_group(self) -> None:
        self.scene.delete_group()

    @rule(topic=topics)
    def delete_offsets(self, topic: str) -> None:
        self.scene.delete_offsets(CommitPartition(topic, 0, 0))

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        self.scene.forget_topic(topic)
        if not self.scene.waiting:
            assert topic not in self.scene.group.offsets

    @rule()
    def expire_offsets(self) -> None:
        self.scene.expire_offsets()

    def open_tickets(self) -> set[int]:
        """Requests that were not answered, those that are lost with their connections included."""
        return set(range(1, self.scene.tickets + 1)) - set(self.scene.answers)

    @invariant()
    def who_is_not_answered_waits_in_one_place(self) -> None:
        group = self.scene.group
        places = [*group.round.joins.values(), *group.round.syncs.values()]
        for append in group.appends:
            if isinstance(append, OffsetsAppend | TombstonesAppend) and append.answer is not None:
                places.append(append.answer.ticket)
        assert len(places) == len(set(places))
        assert set(places) == self.open_tickets() - self.lost

    @invariant()
    def an_assignment_is_told_only_once_it_is_durable(self) -> None:
        told = [
            answer
            for answer in self.scene.answers.values()
            if isinstance(answer, SyncAnswer) and answer.error_code == errors.NONE
        ]
        if told and self.scene.group.round.phase == STABLE:
            recorded = self.scene.group.recorded
            assert recorded is not None
            assert recorded.generation_id == self.scene.group.round.generation_id

    def teardown(self) -> None:
        if not hasattr(self, "scene"):
            return
        scene = self.scene
        scene.holds = False
        scene.commit()
        # Static members alone may hold a join phase open for as long as their sessions last.
        scene.advance(300_000 + 2 * 60_000)
        assert self.open_tickets() == self.lost
        assert not scene.group.heartbeats
        assert scene.next_due() is None
        assert scene.group.round.phase == EMPTY
        scene.advance(scene.settings.offsets_retention_ms)
        scene.expire_offsets()
        assert not scene.groups.by_id
        assert not replayed(scene.durable).by_id


TestGroupHistory = GroupHistory.TestCase
TestGroupHistory.settings = settings(max_examples=400, stateful_step_count=40)


def test_the_model_reaches_a_group_that_works() -> None:
    history = GroupHistory()
    history.begin(size_max=3, delay_ms=0, start="joined")
    history.sync_everybody()

    assert history.scene.group.round.phase == STABLE
    history.who_is_not_answered_waits_in_one_place()
    history.an_assignment_is_told_only_once_it_is_durable()
    history.teardown()
