"""Checkers of rounds: the invariants of each live group between two turns.

A stable round with no append under way is as its record in the log says.  Each member, and each
member id that was given out, has one session, which ends some time.  A join phase ends when all
have joined; while a given id has not joined, it ends no earlier than its deadline.  After a stall
of the broker's process each session has its whole time left.
"""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.broker import Broker
from tarry.broker.coordinator.groups.sessions import DelayedHeartbeat
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    GroupRound,
)
from tarry.group.classic.state import JOIN, SYNC, ClassicGroup


def classic_round(shard: GroupShard, group_id: str) -> GroupRound:
    """Return the round of a classic group."""
    group = shard.group(group_id)
    assert isinstance(group, ClassicGroup)
    return group.round


class RoundChecker:
    """Checker that remembers each group's round of the turn before."""

    def __init__(self) -> None:
        self._before: dict[str, GroupRound] = {}
        self._was_stopped = False

    def on_stall(self) -> None:
        """Note that the broker's process was stopped before the next turn."""
        self._was_stopped = True

    def on_life_begins(self) -> None:
        """Forget the rounds of the broker's last life."""
        self._before = {}

    def after_turn(self, broker: Broker) -> list[str]:
        """Return a sentence for each violation in the rounds after a turn."""
        before = self._before
        was_stopped = self._was_stopped
        self._before = {}
        self._was_stopped = False
        for shard in broker.groups.shards.values():
            if shard.runtime.error_code != errors.NONE:
                continue
            for group_id, group in shard.groups.by_id.items():
                assert isinstance(group, ClassicGroup)
                self._before[group_id] = group.round
                sentence = wrong_with_round(group) or _wrong_with_operations(shard, group)
                earlier = before.get(group_id)
                if not sentence and earlier is not None and earlier is not group.round:
                    sentence = _wrong_with_end_of_join_phase(
                        earlier, group.round, broker.this_turn.now_ms
                    )
                if not sentence and was_stopped:
                    sentence = _wrong_with_sessions(group, broker.this_turn.now_ms)
                if sentence:
                    return [f"group {group_id}: {sentence}"]
            for group_id in _waiting_groups(shard):
                if group_id not in shard.groups.by_id:
                    return [f"group {group_id} is gone, and something waits for it"]
        return []


def wrong_with_round(group: ClassicGroup) -> str:
    """Return a sentence about the first invariant of the round that does not hold, or ""."""
    now = group.round
    for name, named in (
        ("joins", now.joins),
        ("syncs", now.syncs),
        ("assignments", now.assignments),
    ):
        strangers = [each for each in named if each not in now.members]
        if strangers:
            return f"{name} name {strangers}, who are no members"
    if any(each in now.members for each in now.pending_members):
        return "a member's id is open as well"
    has_deadline = now.join_deadline_ms is not None
    if has_deadline != (now.phase == PREPARING_REBALANCE):
        return f"phase {now.phase} and join deadline {now.join_deadline_ms}"
    if now.phase in (COMPLETING_REBALANCE, STABLE):
        if now.leader_id not in now.members or now.protocol_name is None:
            return f"leader {now.leader_id} and protocol {now.protocol_name} in phase {now.phase}"
        if (now.sync_deadline_ms is not None) != bool(now.unsynced):
            return f"sync deadline {now.sync_deadline_ms}, and not synced are {list(now.unsynced)}"
    elif now.syncs:
        return f"syncs wait in phase {now.phase}"
    if waits_in_vain(group):
        return waits_in_vain(group)
    watched = [*now.members, *now.pending_members]
    if sorted(group.heartbeats) != sorted(watched):
        return f"sessions of {sorted(group.heartbeats)}, and there are {sorted(watched)}"
    for member_id, heartbeat in group.heartbeats.items():
        if heartbeat.deadline_ms is None and member_id not in [*now.joins, *now.syncs]:
            return f"member {member_id} is kept for ever"
    if now.phase == STABLE and not group.appends:
        return _wrong_with_record(group)
    return ""


def waits_in_vain(group: ClassicGroup) -> str:
    """Return a sentence if members wait for something that is there already, or ""."""
    now = group.round
    if now.phase == PREPARING_REBALANCE and not now.is_initial and now.has_everyone_joined():
        return f"all of {list(now.members)} have joined, and the join phase goes on"
    if now.phase == STABLE and now.syncs:
        return f"{list(now.syncs)} wait for an assignment that is known"
    return ""


def _wrong_with_record(group: ClassicGroup) -> str:
    now = group.round
    recorded = group.recorded
    if recorded is None:
        return "it works and is not recorded"
    if (recorded.generation_id, recorded.protocol_name, recorded.leader_id) != (
        now.generation_id,
        now.protocol_name,
        now.leader_id,
    ):
        return (
            f"generation {now.generation_id} of leader {now.leader_id} works, and recorded is "
            f"{recorded.generation_id} of {recorded.leader_id}"
        )
    rows = {row.member_id: row.assignment for row in recorded.members}
    if rows != now.assignments or list(rows) != list(now.members):
        return f"assigned is {now.assignments}, and recorded is {rows}"
    return ""


def _waiting_groups(shard: GroupShard) -> list[str]:
    """Return the groups in which something waits."""
    kinds = (*shard.phases.values(), shard.sessions)
    return [each.group_id for kind in kinds for each in kind.operations.values()]


def _wrong_with_operations(shard: GroupShard, group: ClassicGroup) -> str:
    """Check that the operations in the purgatories are those that the group waits for."""
    group_id = group.group_id
    now = group.round
    watched = [
        each.member_id
        for each in shard.sessions.operations.values()
        if isinstance(each, DelayedHeartbeat) and each.group_id == group_id
    ]
    expected = [
        member_id for member_id, each in group.heartbeats.items() if each.deadline_ms is not None
    ]
    if sorted(watched) != sorted(expected):
        return f"heartbeat operations of {sorted(watched)}, and watched are {sorted(expected)}"
    has_join = group_id in shard.phases[JOIN].operations
    if has_join != (now.join_deadline_ms is not None):
        return f"join operation: {has_join}, and join deadline {now.join_deadline_ms}"
    has_sync = group_id in shard.phases[SYNC].operations
    if has_sync != (now.sync_deadline_ms is not None):
        return f"sync operation: {has_sync}, and sync deadline {now.sync_deadline_ms}"
    return ""


def _wrong_with_sessions(group: ClassicGroup, now_ms: int) -> str:
    now = group.round
    for member_id, heartbeat in group.heartbeats.items():
        member = now.members.get(member_id)
        session_ms = now.pending_members[member_id] if member is None else member.session_timeout_ms
        if heartbeat.deadline_ms is not None and heartbeat.deadline_ms < now_ms + session_ms:
            return (
                f"the broker was stopped, and {member_id} has {heartbeat.deadline_ms - now_ms} ms "
                f"of {session_ms} ms left"
            )
    return ""


def _wrong_with_end_of_join_phase(before: GroupRound, now: GroupRound, now_ms: int) -> str:
    if before.phase != PREPARING_REBALANCE or now.generation_id != before.generation_id + 1:
        return ""
    assert before.join_deadline_ms is not None
    open_ids = [each for each in now.pending_members if each in before.pending_members]
    if open_ids and now_ms < before.join_deadline_ms:
        return (
            f"the join phase ended {before.join_deadline_ms - now_ms} ms early though "
            f"{open_ids} were given out"
        )
    return ""
