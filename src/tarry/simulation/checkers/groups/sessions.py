"""Checkers of sessions: no member is removed too early, and a static member has one id."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.simulation.groups.history import (
    ACKNOWLEDGED,
    ALL,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    GroupHistory,
    MemberRequest,
)

# Order of the steps of one turn.  A request that may remove a member counts before and after all
# others, since its place in the turn is not known.
_FORGET: Final = 0
_UNKNOWN: Final = 1
_HEAR: Final = 2
_FORGET_AGAIN: Final = 3

_NO_TIMEOUT: Final = 1 << 62

Heard = dict[tuple[str, str], MemberRequest]
Timeouts = dict[tuple[str, str], tuple[int, int]]


def check_sessions(history: GroupHistory) -> list[str]:
    """Check that no member is unknown soon after it was heard, or after it was given its id.

    A member goes when its session ends, when it leaves, or when it does not rejoin within the
    rebalance time-out.  The smaller of both time-outs has to pass before it is unknown.
    """
    heard: Heard = {}
    timeouts: Timeouts = {}
    steps: list[tuple[int, int, MemberRequest]] = []
    for asked in history.asked:
        _note_timeouts(timeouts, asked)
        if asked.delivered_turn >= 0:
            steps += _steps(asked)
    for _turn, rank, asked in sorted(steps, key=_place):
        if rank in (_FORGET, _FORGET_AGAIN):
            _forget(heard, asked)
        elif rank == _HEAR:
            _hear(history, heard, asked)
        else:
            sentence = _unknown_too_early(history, asked, heard, timeouts)
            if sentence:
                return [sentence]
    return []


def _place(step: tuple[int, int, MemberRequest]) -> tuple[int, int]:
    return step[0], step[1]


def _steps(asked: MemberRequest) -> list[tuple[int, int, MemberRequest]]:
    """Return the steps of the check for a request: a turn, the kind of step and the request."""
    steps: list[tuple[int, int, MemberRequest]] = []
    turn = asked.answered_turn
    is_unknown = asked.error_code == errors.UNKNOWN_MEMBER_ID
    # A join that waited may have ended with the removal of its member.  A join that was refused
    # at once has removed nobody.
    if asked.kind == LEAVE or (asked.kind == JOIN and not (is_unknown and _is_at_once(asked))):
        steps.append((asked.delivered_turn, _FORGET, asked))
        steps.append((asked.delivered_turn, _FORGET_AGAIN, asked))
    if turn < 0:
        return steps
    if is_unknown:
        steps.append((turn, _UNKNOWN, asked))
    elif asked.kind == JOIN and asked.error_code == errors.MEMBER_ID_REQUIRED:
        steps.append((turn, _HEAR, asked))
    elif asked.kind in (SYNC, HEARTBEAT):
        steps.append((turn, _HEAR if asked.is_accepted else _FORGET, asked))
    return steps


def _is_at_once(asked: MemberRequest) -> bool:
    return asked.answered_turn == asked.delivered_turn


def _note_timeouts(timeouts: Timeouts, asked: MemberRequest) -> None:
    if asked.kind != JOIN:
        return
    for member_id in (asked.member_id, asked.given_id):
        if member_id:
            key = (asked.group, member_id)
            session_ms, rebalance_ms = timeouts.get(key, (_NO_TIMEOUT, _NO_TIMEOUT))
            timeouts[key] = (
                min(session_ms, asked.session_timeout_ms),
                min(rebalance_ms, asked.rebalance_timeout_ms),
            )


def _hear(history: GroupHistory, heard: Heard, asked: MemberRequest) -> None:
    key = (asked.group, asked.given_id if asked.kind == JOIN else asked.member_id)
    if asked.kind == HEARTBEAT:
        # A heartbeat alone proves no membership: its member may have to sync yet, or the broker
        # may have answered before it loaded its groups.
        seen = heard.get(key)
        if seen is None:
            return
        if history.life_of(seen.answered_turn) != history.life_of(asked.answered_turn):
            return
    heard[key] = asked


def _forget(heard: Heard, asked: MemberRequest) -> None:
    """Forget a member that may be gone, and other members with its instance id."""
    heard.pop((asked.group, asked.given_id if asked.kind == LEAVE else asked.member_id), None)
    if asked.instance_id is not None:
        for key, seen in list(heard.items()):
            if key[0] == asked.group and seen.instance_id == asked.instance_id:
                del heard[key]


def _unknown_too_early(
    history: GroupHistory, asked: MemberRequest, heard: Heard, timeouts: Timeouts
) -> str:
    seen = heard.get((asked.group, asked.member_id))
    if seen is None:
        return ""
    if history.life_of(seen.delivered_turn) != history.life_of(asked.answered_turn):
        return ""
    if history.has_ended_between(asked.group, seen.delivered_turn, asked.answered_turn):
        return ""
    if history.has_size_limit and asked.kind == JOIN:
        return ""
    session_ms, rebalance_ms = timeouts[(asked.group, asked.member_id)]
    is_pending = seen.kind == JOIN
    # A pending id is no member yet: it may only join, and its group may be deleted meanwhile.
    if is_pending and (asked.kind != JOIN or _is_group_deleted(history, seen, asked)):
        return ""
    kept_ms = session_ms if is_pending else min(session_ms, rebalance_ms)
    times = history.turn_times_ms
    began = seen.delivered_turn
    for turn in history.stall_turns:
        if began < turn <= asked.answered_turn and times[turn] - times[began] < kept_ms:
            began = turn
    passed_ms = times[asked.answered_turn] - times[began]
    if passed_ms >= kept_ms:
        return ""
    what = "was given that id" if is_pending else "was heard"
    return (
        f"member {asked.member_id} of group {asked.group} is unknown {passed_ms} ms after it "
        f"{what}; it has {kept_ms} ms"
    )


def _is_group_deleted(history: GroupHistory, seen: MemberRequest, asked: MemberRequest) -> bool:
    """Return true if the group may have been deleted between the two requests."""
    for write in history.writes:
        exchange = write.exchange
        if exchange is None or write.register != (asked.group, "", ALL):
            continue
        is_later = exchange.delivered_turn >= seen.delivered_turn
        if is_later and exchange.delivered_turn <= asked.answered_turn:
            return True
    return False


def check_fencing(history: GroupHistory) -> list[str]:
    """Check that an instance's old ids are refused once it has a new one."""
    joins = [
        asked
        for asked in history.asked
        if asked.kind == JOIN and asked.is_accepted and asked.instance_id is not None
    ]
    # An id is older than another if it was given before the other was asked for.
    first_turns: dict[tuple[str, str], int] = {}
    for join in joins:
        key = (join.group, join.given_id)
        first_turns[key] = min(first_turns.get(key, join.answered_turn), join.answered_turn)
    for asked in history.asked:
        if asked.instance_id is None or asked.kind == LEAVE or not asked.is_accepted:
            continue
        if not asked.member_id:
            continue
        sentence = _fenced_by(history, asked, joins, first_turns)
        if sentence:
            return [sentence]
    return []


def _fenced_by(
    history: GroupHistory,
    asked: MemberRequest,
    joins: list[MemberRequest],
    first_turns: dict[tuple[str, str], int],
) -> str:
    began = first_turns.get((asked.group, asked.member_id))
    for join in joins:
        if join.group != asked.group or join.instance_id != asked.instance_id:
            continue
        if join.given_id == asked.member_id or join.answered_turn >= asked.delivered_turn:
            continue
        if history.life_of(join.answered_turn) != history.life_of(asked.delivered_turn):
            continue
        if began is not None and began < join.delivered_turn:
            return (
                f"a {asked.kind} of member {asked.member_id} was accepted in turn "
                f"{asked.delivered_turn}, and instance {asked.instance_id} of group {asked.group} "
                f"was {join.given_id} since turn {join.answered_turn}"
            )
    return ""


def check_commits_of_nobody(history: GroupHistory) -> list[str]:
    """Check that a commit without a generation is refused during a member's session."""
    if history.has_size_limit:
        # With a size limit, a broker that starts may turn members away.
        return []
    timeouts: Timeouts = {}
    for asked in history.asked:
        _note_timeouts(timeouts, asked)
    syncs = [asked for asked in history.asked if asked.kind == SYNC and asked.is_accepted]
    for write in history.writes:
        exchange = write.exchange
        if not write.is_of_nobody or write.outcome != ACKNOWLEDGED or exchange is None:
            continue
        for sync in syncs:
            is_before = 0 <= sync.answered_turn < exchange.delivered_turn
            if (
                is_before
                and sync.group == write.register[0]
                and _is_member_until(history, sync, exchange.answered_turn, timeouts)
            ):
                return [
                    f"a commit without a generation was taken in turn {exchange.answered_turn}, "
                    f"and group {sync.group} had member {sync.member_id}, which had synced in "
                    f"turn {sync.answered_turn}"
                ]
    return []


def _is_member_until(
    history: GroupHistory, sync: MemberRequest, last_turn: int, timeouts: Timeouts
) -> bool:
    """Return true if neither silence nor a request can have removed the member that synced."""
    known = timeouts.get((sync.group, sync.member_id))
    if known is None or history.life_of(sync.delivered_turn) != history.life_of(last_turn):
        return False
    if history.has_ended_between(sync.group, sync.delivered_turn, last_turn):
        return False
    times = history.turn_times_ms
    if times[last_turn] - times[sync.delivered_turn] >= min(known):
        return False
    return not any(
        asked.kind in (JOIN, LEAVE)
        and asked.group == sync.group
        and sync.delivered_turn <= asked.delivered_turn <= last_turn
        and (
            sync.member_id in (asked.member_id, asked.given_id)
            or (asked.instance_id is not None and asked.instance_id == sync.instance_id)
        )
        for asked in history.asked
    )
