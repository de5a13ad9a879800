"""Checkers of generations: each has one assignment, and requests of older ones are refused.

A generation of which only JoinGroup told ends with the life of the broker; a generation of which
SyncGroup told is durable.  A group that ceased to exist starts again with its first generation.
"""

from __future__ import annotations

from tarry.base.ids import TopicPartition
from tarry.simulation.groups.history import (
    COMMIT,
    HEARTBEAT,
    JOIN,
    SYNC,
    GroupHistory,
    MemberRequest,
)


def check_assignments(history: GroupHistory) -> list[str]:
    """Check that a generation has one assignment, with no partition given to two members."""
    rounds: dict[tuple[str, int, int], list[MemberRequest]] = {}
    for sync in history.asked:
        if sync.kind != SYNC or not sync.is_accepted or not sync.token:
            continue
        ends = history.ends.get(sync.group, [])
        incarnation = sum(1 for turn in ends if turn <= sync.answered_turn)
        rounds.setdefault((sync.group, incarnation, sync.generation_id), []).append(sync)
    sentences: list[str] = []
    for (group, _incarnation, generation_id), syncs in rounds.items():
        first = syncs[0]
        owners: dict[TopicPartition, str] = {}
        for sync in syncs:
            if sync.token != first.token:
                sentences.append(
                    f"generation {generation_id} of group {group} has two assignments: "
                    f"{first.owner} was told {first.token}, {sync.owner} {sync.token}"
                )
                break
            for partition in sync.partitions:
                owner = owners.setdefault(partition, sync.owner)
                if owner != sync.owner:
                    sentences.append(
                        f"in generation {generation_id} of group {group} {owner} and {sync.owner} "
                        f"both own {partition[0]}-{partition[1]}"
                    )
    return sentences


class _Evidence:
    """Evidence that a generation had begun by the end of a turn."""

    def __init__(self, asked: MemberRequest) -> None:
        self.generation_id = asked.generation_id
        self.turn = asked.answered_turn
        self.is_durable = asked.kind == SYNC


def check_generations(history: GroupHistory) -> list[str]:
    """Check that no member joins a generation older than one that had begun."""
    return _check(history, (JOIN,), "was let into")


def check_old_generations(history: GroupHistory) -> list[str]:
    """Check that no request of an older generation is accepted, commits above all."""
    return _check(history, (COMMIT, SYNC, HEARTBEAT), "was accepted in")


def _check(history: GroupHistory, kinds: tuple[str, ...], what: str) -> list[str]:
    evidence: dict[str, list[_Evidence]] = {}
    for asked in history.asked:
        if asked.kind in (JOIN, SYNC) and asked.is_accepted:
            evidence.setdefault(asked.group, []).append(_Evidence(asked))
    for asked in history.asked:
        if asked.kind not in kinds or not asked.is_accepted or asked.generation_id < 0:
            continue
        for seen in evidence.get(asked.group, ()):
            if _is_older(history, asked, seen):
                return [
                    f"a {asked.kind} of {asked.client} {what} generation {asked.generation_id} of "
                    f"group {asked.group} in turn {asked.delivered_turn}, and generation "
                    f"{seen.generation_id} had begun in turn {seen.turn}"
                ]
    return []


def _is_older(history: GroupHistory, asked: MemberRequest, seen: _Evidence) -> bool:
    turn = asked.delivered_turn
    if asked.generation_id >= seen.generation_id or seen.turn >= turn:
        return False
    # A broker that has not loaded its groups yet accepts every heartbeat.
    is_of_life = not seen.is_durable or asked.kind == HEARTBEAT
    if is_of_life and history.life_of(seen.turn) != history.life_of(turn):
        return False
    return not history.has_ended_between(asked.group, seen.turn, asked.answered_turn)
