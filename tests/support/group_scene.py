"""One partition of groups as a broker keeps it, with the clock, the log and chance in the hand.

Records are durable as soon as they are appended, unless `holds` is set: then they wait for `commit`
or `fail`.  After every step the scene checks the laws: a replay of the durable records gives the
durable part, a round keeps its invariants, and no ticket is answered twice.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from tarry.base import errors
from tarry.group.classic.joining import decide_join
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.membership import (
    decide_heartbeat,
    decide_leave,
    decide_sync,
)
from tarry.group.classic.requests import (
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    LeavingMember,
    SyncRequest,
)
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    GroupRound,
    Protocol,
)
from tarry.group.classic.state import JOIN, SYNC, ClassicGroup
from tarry.group.decision import Append, Decision, HeartbeatWait, Moment
from tarry.group.notes import Note
from tarry.group.offsets import decisions as offsets
from tarry.group.offsets.records import NO_TOPIC_ID
from tarry.group.offsets.requests import CommitPartition, CommitRequest
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer, GroupSettings
from tarry.group.state import (
    Groups,
    GroupState,
    Kinds,
    decide_append_failed,
    decide_recorded,
    sent_away,
)

KINDS = Kinds([CLASSIC])


class HeartbeatAnswer(Answer, frozen=True):
    """Code that a heartbeat is answered."""


WALL_MS = 1_800_000_000_000
RANGE = (("range", b"\x00\x00"),)
BOTH = (("range", b"\x00\x00"), ("roundrobin", b"\x00\x01"))


class Scene:
    """See the module's text.  Requests return their ticket; `answers` has what came for it."""

    def __init__(self, settings: GroupSettings | None = None, *, group_id: str = "g") -> None:
        self.settings = settings or GroupSettings()
        self.group_id = group_id
        self.groups = Groups(KINDS)
        self.random = random.Random(1)
        self.now_ms = 0
        self.holds = False
        self.tickets = 0
        self.answers: dict[int, Answer] = {}
        self.notes: list[Note] = []
        self.waiting: deque[tuple[str, Append]] = deque()
        self.durable: list[tuple[bytes, bytes | None]] = []
        # The round as it was left, to see that a decision does not touch it.
        self.left: tuple[GroupRound, dict[str, object]] | None = None
        self.on_answer: Callable[[Answer], None] | None = None
        self.on_decision: Callable[[Decision], None] | None = None

    # -- the world

    @property
    def moment(self) -> Moment:
        return Moment(self.now_ms, WALL_MS + self.now_ms, self.settings)

    @property
    def group(self) -> ClassicGroup:
        group = self.groups.group(self.group_id)
        assert isinstance(group, ClassicGroup)
        return group

    def take(self, decision: Decision, group: GroupState | None = None) -> None:
        """Carry a decision out, as the broker does."""
        group = group or self.group
        if self.left is not None and self.left[0] is group.round:
            assert vars(group.round) == self.left[1]
        self.groups.take(group, decision)
        if decision.append is not None:
            self.waiting.append((group.group_id, decision.append))
        self.notes.extend(decision.notes)
        if self.on_decision is not None:
            self.on_decision(decision)
        for answer in decision.answers:
            assert answer.ticket not in self.answers
            self.answers[answer.ticket] = answer
            if self.on_answer is not None:
                self.on_answer(answer)
        if not self.holds:
            self.commit()
        self.check()

    def commit(self, count: int | None = None) -> None:
        """The high watermark passes the oldest appends: all, or so many."""
        while self.waiting and count != 0:
            group_id, append = self.waiting.popleft()
            for record in append.records:
                self.durable.append(record.encode())
                self.groups.apply(record)
            group = self.groups.group(group_id)
            self.take(decide_recorded(group, append, self.moment), group)
            count = None if count is None else count - 1

    def fail(self, error_code: int = errors.NOT_ENOUGH_REPLICAS) -> None:
        """The newest append does not get into the log."""
        group_id, append = self.waiting.pop()
        group = self.groups.group(group_id)
        self.take(decide_append_failed(group, append, error_code, self.moment), group)

    def advance(self, elapsed_ms: int) -> None:
        """Time passes, and what is due by then happens in its order."""
        until_ms = self.now_ms + elapsed_ms
        while (due := self.next_due()) is not None and due[0] <= until_ms:
            self.now_ms = max(self.now_ms, due[0])
            self.expire(due[1], due[2])
        self.now_ms = until_ms

    def next_due(self) -> tuple[int, str, str] | None:
        """Deadline, kind and member of the next operation that expires."""
        group = self.group
        due = [
            (each.deadline_ms, "session", member_id)
            for member_id, each in group.heartbeats.items()
            if each.deadline_ms is not None
        ]
        if group.round.join_deadline_ms is not None:
            due.append((group.round.join_deadline_ms, "join", ""))
        if group.round.sync_deadline_ms is not None:
            due.append((group.round.sync_deadline_ms, "sync", ""))
        return min(due, default=None)

    def expire(self, kind: str, member_id: str) -> None:
        """An operation expired."""
        group = self.group
        if kind == "session":
            self.take(CLASSIC.decide_session_expired(group, member_id, self.moment))
        elif kind == "join":
            self.take(CLASSIC.decide_phase_expired(group, JOIN, self.moment))
        else:
            self.take(CLASSIC.decide_phase_expired(group, SYNC, self.moment))

    def restart(self) -> None:
        """The broker dies and comes back: what was not durable is lost."""
        self.waiting.clear()
        self.groups = replayed(self.durable)
        for group in list(self.groups.by_id.values()):
            self.take(group.kind.decide_load(group, self.moment), group)

    def unload(self) -> None:
        """The partition is led elsewhere."""
        self.waiting.clear()
        decision = Decision(self.now_ms)
        decision.answers = sent_away(self.group, errors.NOT_COORDINATOR)
        self.take(decision)
        self.groups = Groups(KINDS)

    def stall(self, elapsed_ms: int) -> None:
        """The broker itself was stopped for so long."""
        self.now_ms += elapsed_ms
        self.take(CLASSIC.decide_fresh_sessions(self.group, self.moment))

    # -- requests

    def ticket(self) -> int:
        self.tickets += 1
        return self.tickets

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        protocols: tuple[Protocol, ...] = BOTH,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        client_id: str = "client",
        version: int = 9,
        reason: str = "",
    ) -> int:
        request = JoinRequest(
            self.ticket(),
            member_id,
            instance_id,
            client_id=client_id,
            client_host="/10.0.0.1",
            protocol_type=protocol_type,
            protocols=protocols,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            must_know_id=version >= 4,
            may_skip_assignment=version >= 9,
            reason=reason,
        )
        self.take(decide_join(self.group, request, self.moment, self.random))
        return request.ticket

    def sync(
        self,
        member_id: str,
        generation_id: int | None = None,
        instance_id: str | None = None,
        *,
        assignments: tuple[tuple[str, bytes], ...] = (),
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        if generation_id is None:
            generation_id = self.group.round.generation_id
        request = SyncRequest(
            self.ticket(),
            member_id,
            instance_id,
            generation_id=generation_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments,
        )
        self.take(decide_sync(self.group, request, self.moment))
        return request.ticket

    def heartbeat(
        self, member_id: str, generation_id: int | None = None, instance_id: str | None = None
    ) -> int:
        if generation_id is None:
            generation_id = self.group.round.generation_id
        ticket = self.ticket()
        code, member = decide_heartbeat(self.group, member_id, instance_id, generation_id)
        answered = Decision(self.now_ms)
        if member is not None:
            deadline_ms = self.now_ms + member.session_timeout_ms
            self.group.hear(member.member_id, deadline_ms, self.now_ms)
            # For who writes down what was decided: it changes nothing more.
            answered.heartbeats.append(HeartbeatWait(member.member_id, deadline_ms))
        answered.answers.append(HeartbeatAnswer(ticket, code))
        self.take(answered)
        return ticket

    def leave(self, *members: LeavingMember) -> int:
        request = LeaveRequest(self.ticket(), members)
        self.take(decide_leave(self.group, request, self.moment))
        return request.ticket

    def commit_offsets(
        self,
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        *,
        partitions: tuple[CommitPartition, ...] = (CommitPartition("topic", 0, 42),),
        retention_ms: int = -1,
        version: int = 9,
    ) -> int:
        request = CommitRequest(
            self.ticket(),
            member_id,
            instance_id,
            generation_id=generation_id,
            partitions=partitions,
            retention_ms=retention_ms,
            knows_group_not_found=version >= 9,
        )
        self.take(offsets.decide_commit(self.group, request, self.moment))
        return request.ticket

    def delete_group(self) -> int:
        ticket = self.ticket()
        self.take(offsets.decide_delete_group(self.group, ticket, self.moment))
        return ticket

    def delete_offsets(self, *partitions: CommitPartition) -> int:
        ticket = self.ticket()
        self.take(offsets.decide_delete_offsets(self.group, ticket, list(partitions), self.moment))
        return ticket

    def forget_topic(self, topic: str, successor_id: bytes | None = None) -> None:
        """The topic was deleted; with an id another one has its name since."""
        names = dict.fromkeys(self.group.offsets)
        for append in self.group.appends:
            names.update((each.topic, None) for each in append.records if hasattr(each, "topic"))
        topic_ids = {name: NO_TOPIC_ID for name in names if name != topic}
        if successor_id is not None:
            topic_ids[topic] = successor_id
        self.take(offsets.decide_forget_topics(self.group, topic_ids, self.moment))

    def expire_offsets(self) -> None:
        self.take(offsets.decide_expire_offsets(self.group, self.moment))

    # -- shorthand

    def new_member(self, **options: object) -> str:
        """A dynamic member asks for an id and joins with it; its id."""
        asked = self.answers[self.join(**options)]  # type: ignore[arg-type]
        assert isinstance(asked, JoinAnswer)
        assert asked.error_code == errors.MEMBER_ID_REQUIRED
        self.join(asked.member_id, **options)  # type: ignore[arg-type]
        return asked.member_id

    def static_member(self, instance_id: str, **options: object) -> str:
        """A static member joins; its id."""
        self.join("", instance_id, **options)  # type: ignore[arg-type]
        return self.group.round.static_members[instance_id]

    def sync_all(self) -> None:
        """Every member syncs, the leader last, with its name as each member's assignment."""
        now = self.group.round
        given = tuple((each, f"{each}'s".encode()) for each in now.members)
        leader_id = now.leader_id
        assert leader_id is not None
        for member_id in [each for each in now.members if each != leader_id]:
            self.sync(member_id)
        self.sync(leader_id, assignments=given)

    def answer(self, ticket: int) -> Answer | None:
        return self.answers.get(ticket)

    def error(self, ticket: int) -> str:
        """The name of the error that a ticket was answered with, or `waits`."""
        answer = self.answers.get(ticket)
        return "waits" if answer is None else errors.error_name(answer.error_code)

    # -- laws

    def check(self) -> None:
        """What must hold after every step."""
        assert durable_part(self.groups) == durable_part(replayed(self.durable))
        for group in self.groups.by_id.values():
            check_round(group, self.now_ms)
        now = self.group.round
        self.left = (now, vars(now.copy()))


def replayed(records: list[tuple[bytes, bytes | None]]) -> Groups:
    """The state that the log gives."""
    groups = Groups(KINDS)
    for key, value in records:
        record = KINDS.decode(key, value)
        assert record is not None
        groups.apply(record)
    return groups


def durable_part(groups: Groups) -> dict[str, tuple[GroupRecord | None, object]]:
    """What of the groups must survive."""
    return {
        group.group_id: (group.recorded, group.offsets)
        for group in groups.by_id.values()
        if group.recorded is not None or group.offsets
    }


def check_round(group: GroupState, now_ms: int) -> None:
    """The invariants of a round."""
    now = group.round
    assert group.exists
    for named in (now.joins, now.syncs, now.unsynced, now.assignments):
        assert all(each in now.members for each in named)
    assert not set(now.members) & set(now.pending_members)
    assert now.static_members == {
        each.instance_id: each.member_id
        for each in now.members.values()
        if each.instance_id is not None
    }
    counts: dict[str, int] = {}
    for member in now.members.values():
        for name, _ in member.protocols:
            counts[name] = counts.get(name, 0) + 1
    assert now.protocol_counts == counts
    assert now.members_size == sum(each.size for each in now.members.values())
    assert now.assignments_size == sum(map(len, now.assignments.values()))
    texts = [record.metadata for each in group.offsets.values() for record in each.values()]
    waiting = sum(append.texts_size for append in group.appends)
    texts_size = sum(map(len, texts)) + waiting
    assert group.metadata_size == now.metadata_size + texts_size
    assert (now.join_deadline_ms is not None) == (now.phase == PREPARING_REBALANCE)
    if now.phase in (COMPLETING_REBALANCE, STABLE):
        assert now.leader_id in now.members
        assert now.protocol_name is not None
        assert (now.sync_deadline_ms is not None) == bool(now.unsynced)
    else:
        assert now.sync_deadline_ms is None
        assert not now.syncs
    assert list(group.heartbeats) == list(dict.fromkeys(group.heartbeats))
    assert set(group.heartbeats) == set(now.members) | set(now.pending_members)
    for member_id, heartbeat in group.heartbeats.items():
        # Nobody is kept for ever: who is not watched waits itself.
        if heartbeat.deadline_ms is None:
            assert member_id in now.joins or member_id in now.syncs
    if now.phase == STABLE and not group.appends:
        check_recorded(group)


def check_recorded(group: GroupState) -> None:
    """A group that works and has nothing on its way is what its record says."""
    now = group.round
    recorded = group.recorded
    assert recorded is not None
    assert recorded.generation_id == now.generation_id
    assert recorded.protocol_type == now.protocol_type
    assert recorded.protocol_name == now.protocol_name
    assert recorded.leader_id == now.leader_id
    assert recorded.state_timestamp_ms <= now.state_timestamp_ms
    assert {row.member_id: row.assignment for row in recorded.members} == now.assignments
    for row in recorded.members:
        member = now.members[row.member_id]
        assert row.instance_id == member.instance_id
        assert row.client_id == member.client_id
        assert row.subscription == member.metadata(now.protocol_name)
        assert row.session_timeout_ms == member.session_timeout_ms
        assert row.rebalance_timeout_ms == member.rebalance_timeout_ms
