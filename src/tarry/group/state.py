"""State of groups of any kind: offsets, pending appends, and the state that a kind adds.

A group id has offsets and a kind; the offsets stay when the kind changes.  The offsets and the
records of the kind are durable: only `apply` changes them, while the broker runs as in loading, and
only with records below the high watermark.  So an offset that was fetched is never revoked, and
the log, replayed into an empty state, gives the durable part of the live one after every step.

All other state is volatile.  A decision does not change it: the decision holds the new values, and
`take` puts them in place.

`GroupState.exists` is False for a group without any state; such a group is not stored.  A group
that has only offsets is of the default kind, the first of `Kinds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

from mypy_extensions import mypyc_attr

from tarry.base.errors import CorruptData
from tarry.group.decision import APPEND_ERRORS, Append, Decision, Moment
from tarry.group.notes import AppendFailed
from tarry.group.offsets.records import OFFSET_DECODERS, OffsetCommitted
from tarry.group.records import NO_TIMESTAMP, Decoder, GroupRecord
from tarry.group.requests import Answer
from tarry.group.views import DescribedGroup, GroupListing
from tarry.wire.reader import MalformedData, Reader


class MemberSession:
    """Session of a member: its deadline, and the time of the last sign of life.

    If the deadline is None the session does not end: the member waits for an answer of this broker.
    """

    __slots__ = ("deadline_ms", "heard_ms")

    def __init__(self, deadline_ms: int | None, heard_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.heard_ms = heard_ms


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupState:
    """State of one group.  The subclass of a kind adds the state of the members."""

    def __init__(self, kind: GroupKind[Any], group_id: str) -> None:
        self.kind = kind
        self.group_id = group_id
        # Newest committed offsets, by topic and partition.
        self.offsets: dict[str, dict[int, OffsetCommitted]] = {}
        self.heartbeats: dict[str, MemberSession] = {}
        # Appends whose records are not below the high watermark yet, in the order of the log.
        self.appends: list[Append[Any]] = []
        # Bytes of the metadata texts of durable offsets, and of those in pending appends.
        self._texts_size = 0
        self._waiting_texts_size = 0

    def succeed(self, former: GroupState) -> None:
        """Take over the offsets and pending appends of a group that changes its kind."""
        self.offsets = former.offsets
        self.appends = former.appends
        self._texts_size = former._texts_size
        self._waiting_texts_size = former._waiting_texts_size

    @property
    def metadata_size(self) -> int:
        """Bytes of members, assignments and texts of offsets together."""
        return self.members_size() + self._texts_size + self._waiting_texts_size

    @property
    def exists(self) -> bool:
        """True if the group has any state."""
        return bool(self.offsets) or bool(self.appends) or not self.is_vacant()

    # -- offsets

    def offset(self, topic: str, partition: int) -> OffsetCommitted | None:
        """Return the newest durable offset of a partition; None if there is none."""
        partitions = self.offsets.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put_offset(self, record: OffsetCommitted) -> None:
        """Store an offset in place of the partition's earlier one."""
        partitions = self.offsets.setdefault(record.topic, {})
        before = partitions.get(record.partition)
        partitions[record.partition] = record
        self._texts_size += len(record.metadata)
        if before is not None:
            self._texts_size -= len(before.metadata)

    def drop_offset(self, topic: str, partition: int) -> None:
        """Drop an offset if there is one; a compacted log may have only its tombstone."""
        known = self.offsets.get(topic)
        if known is not None:
            gone = known.pop(partition, None)
            if gone is not None:
                self._texts_size -= len(gone.metadata)
            if not known:
                del self.offsets[topic]

    def take(self, decision: Decision) -> None:
        """Take over the new volatile state of a decision; its records are applied later."""
        for wait in decision.heartbeats:
            if wait.ends:
                self.heartbeats.pop(wait.member_id, None)
                continue
            known = self.heartbeats.get(wait.member_id)
            heard_ms = wait.heard_ms
            if heard_ms is None:
                heard_ms = known.heard_ms if known is not None else decision.now_ms
            self.heartbeats[wait.member_id] = MemberSession(wait.deadline_ms, heard_ms)
        if decision.settled is not None:
            self.appends.remove(decision.settled)
            self._waiting_texts_size -= decision.settled.texts_size
            decision.settled.has_failed = decision.has_failed
        if decision.append is not None:
            self.appends.append(decision.append)
            self._waiting_texts_size += decision.append.texts_size

    def hear(self, member_id: str, deadline_ms: int, now_ms: int) -> None:
        """Restart the session of a member that sent a heartbeat."""
        session = self.heartbeats.get(member_id)
        if session is None:
            self.heartbeats[member_id] = MemberSession(deadline_ms, now_ms)
        else:
            session.deadline_ms = deadline_ms
            session.heard_ms = now_ms

    # -- answers of a kind about its members

    def is_vacant(self) -> bool:
        """Return True if the group has only offsets, so that its kind may change."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        """Return True if the group has no members, so that it may be deleted."""
        raise NotImplementedError

    def is_idle(self) -> bool:
        """Return True if the group has no members, and no unused id that was given out."""
        return self.is_empty()

    def is_dead(self) -> bool:
        """Return true while the group is being removed."""
        return False

    def state_name(self) -> str:
        """Return the name of the group's state, as in ListGroups."""
        raise NotImplementedError

    def protocol_type(self) -> str:
        """Return the protocol type, as in ListGroups."""
        return ""

    def members_size(self) -> int:
        """Return the bytes of members and assignments together."""
        return 0

    def commit_error(self, member_id: str, instance_id: str | None, epoch: int) -> int:
        """Return the error of a commit that names this member; NONE if it may commit."""
        raise NotImplementedError

    def hear_commit(self, member_id: str, decision: Decision) -> None:
        """Restart the session of a member that commits."""

    def retention(self) -> tuple[dict[str, None] | None, int]:
        """Return the topics whose offsets do not expire (None: all topics), and the time from which
        the retention of the others counts (NO_TIMESTAMP: from each commit).
        """
        return {}, NO_TIMESTAMP

    def can_lose_offsets(self) -> bool:
        """Return true if OffsetDelete may delete offsets of topics without a subscriber."""
        return self.is_empty()

    def topics_in_use(self) -> dict[str, None] | None:
        """Return the topics to which members are subscribed, as keys; None if they are unknown."""
        return {}

    def deadline_ms(self, phase: str) -> int | None:
        """Return the deadline of a phase in which the whole group waits; None if it does not
        wait.
        """
        return None

    def waiting_answers(self, error_code: int) -> list[Answer]:
        """Return answers with this error to requests that wait for other members."""
        return []


G = TypeVar("G", bound=GroupState)


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupKind(Generic[G]):
    """Kind of groups: its name, its state, its records, and the decisions about its groups.

    `name` is the group type in ListGroups and the kind of its records; `decoders` decode a record
    by the number in its key.  In each of the `phases` a whole group may wait, in a purgatory of the
    phase's name.
    """

    def __init__(self, name: str, decoders: dict[int, Decoder], phases: tuple[str, ...]) -> None:
        self.name = name
        self.decoders = decoders
        self.phases = phases

    def new_group(self, group_id: str) -> G:
        """Return a new group without any state."""
        raise NotImplementedError

    def tombstones(self, group: G) -> list[GroupRecord]:
        """Return the records that remove the durable state of the group, except its offsets."""
        raise NotImplementedError

    def described(self, group: G) -> DescribedGroup | None:
        """Describe a group for DescribeGroups; None if the kind has its own API for that."""
        return None

    def decide_load(self, group: G, moment: Moment) -> Decision:
        """Decide how a loaded group continues, once all its records are applied."""
        return Decision(moment.now_ms)

    def decide_removal(self, group: G, moment: Moment) -> Decision:
        """Decide the new state of a group without members whose tombstones go to the log."""
        return Decision(moment.now_ms)

    def decide_revival(self, group: G, moment: Moment) -> Decision:
        """Decide the new state of a group that could not be removed."""
        return Decision(moment.now_ms)

    def decide_session_expired(self, group: G, member_id: str, moment: Moment) -> Decision:
        """Decide about a member whose heartbeat operation has expired."""
        return Decision(moment.now_ms)

    def decide_phase_expired(self, group: G, phase: str, moment: Moment) -> Decision:
        """Decide about a phase of the group whose operation has expired.

        The decision changes nothing if the phase has a later deadline now.
        """
        return Decision(moment.now_ms)

    def decide_fresh_sessions(self, group: G, moment: Moment) -> Decision:
        """Restart all deadlines of members, because the broker did not run and heard no
        heartbeat.
        """
        return Decision(moment.now_ms)


# -- decisions about a group of any kind


def decide_recorded(group: GroupState, append: Append[Any], moment: Moment) -> Decision:
    """Decide what follows once an append's records are below the high watermark and applied."""
    decision = append.recorded(group, moment)
    decision.settled = append
    return decision


def decide_append_failed(
    group: GroupState, append: Append[Any], error_code: int, moment: Moment
) -> Decision:
    """Decide what follows if an append's records are not in the log: the group goes back to its
    state before.
    """
    decision = append.failed(group, APPEND_ERRORS.get(error_code, error_code), moment)
    decision.settled = append
    decision.has_failed = True
    decision.notes.insert(0, AppendFailed(append.what, error_code))
    return decision


def sent_away(group: GroupState, error_code: int) -> list[Answer]:
    """Return an answer with this error to every waiting request, because another broker may
    coordinate the group.

    Requests that wait for records are among them: only the other leader knows which are durable.
    """
    answers = group.waiting_answers(error_code)
    for append in group.appends:
        if append.answer is not None:
            answers.append(append.answer.failed(error_code))
    return answers


# -- all groups


class Kinds:
    """Kinds of groups; a group that has only offsets is of the first kind."""

    def __init__(self, kinds: Sequence[GroupKind[Any]]) -> None:
        self.default = kinds[0]
        self.by_name = {each.name: each for each in kinds}
        self._decoders = dict(OFFSET_DECODERS)
        for kind in kinds:
            self._decoders.update(kind.decoders)

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord | None:
        """Decode a record; None if no kind has this key; `CorruptData` if it cannot be read."""
        try:
            reader = Reader(key)
            decoder = self._decoders.get(reader.i16())
            return None if decoder is None else decoder(reader, value)
        except MalformedData as flaw:
            raise CorruptData(f"a record of a group cannot be read: {flaw}") from flaw


class Groups:
    """Groups of one partition of `__consumer_offsets`."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.by_id: dict[str, GroupState] = {}

    def group(self, group_id: str) -> GroupState:
        """Return the group; an unknown one is returned empty, and stored only by `take`."""
        return self.by_id.get(group_id) or self.kinds.default.new_group(group_id)

    def of_kind(self, kind: GroupKind[G], group_id: str) -> G | None:
        """Return the group as one of this kind, like `group`; None if it is of another kind."""
        known = self.by_id.get(group_id)
        if known is None:
            return kind.new_group(group_id)
        if known.kind is kind:
            return cast(G, known)
        is_free = known.is_vacant() and not any(each.is_of_kind for each in known.appends)
        return self._turned(known, kind) if is_free else None

    def take(self, group: GroupState, decision: Decision) -> None:
        """Carry a decision into its group; a group that no longer exists is removed."""
        group.take(decision)
        self._keep(group)

    def apply(self, record: GroupRecord) -> None:
        """Apply a record to its group, which may begin, end or change its kind."""
        group = self.group(record.group_id)
        kind = record.kind
        if kind and kind != group.kind.name:
            if record.is_tombstone:
                # The tombstone is of a kind that the group had before.
                return
            group = self._turned(group, self.kinds.by_name[kind])
        record.apply_to(group)
        self._keep(group)

    def listed(self, states: dict[str, None], types: dict[str, None]) -> list[GroupListing]:
        """List the groups in one of these states and of one of these types, by id; empty means any.

        States and types are in lower case (`without_case`); unknown ones match nothing.
        """
        found: list[GroupListing] = []
        for group_id in sorted(self.by_id):
            group = self.by_id[group_id]
            state = group.state_name()
            kind = group.kind.name
            if (not states or state.lower() in states) and (not types or kind.lower() in types):
                found.append(GroupListing(group_id, group.protocol_type(), state, kind))
        return found

    def _turned(self, group: GroupState, kind: GroupKind[G]) -> G:
        """Return a group of this kind with the offsets and pending appends of `group`."""
        turned = kind.new_group(group.group_id)
        turned.succeed(group)
        return turned

    def _keep(self, group: GroupState) -> None:
        if not group.exists:
            self.by_id.pop(group.group_id, None)
        elif group.kind is not self.kinds.default and not group.appends and group.is_vacant():
            self.by_id[group.group_id] = self._turned(group, self.kinds.default)
        else:
            self.by_id[group.group_id] = group
