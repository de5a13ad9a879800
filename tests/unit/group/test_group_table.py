"""The table of states and requests: every cell, compared with what the group answers.

Who asks: F is a follower, L the leader, S a static member of instance `s`; `wrong` is an id that
nobody has, `missing` an empty one; `F+s` is F's id with the instance of S, `+u` an instance that
nobody has.  Generations: 5 is the current one.

A cell is what comes at once (an error's name or `waits`), `recorded` for NONE that comes once
the records are durable and not before, and the phase that follows if it is another one, by its
first letter.  `any` stands for every generation.
"""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace
from tests.support.group_scene import BOTH, WALL_MS, Scene

from tarry.base import errors
from tarry.group.classic.records import GroupMetadata, MemberRow
from tarry.group.classic.requests import LeaveAnswer, LeavingMember
from tarry.group.classic.round import DEAD, PHASE_NAMES
from tarry.group.offsets.records import OffsetCommitted

STATES = ["Unknown", "Empty", "Preparing", "Completing", "Stable", "Dead"]
SHORT = {
    "UNKNOWN": "UNKNOWN_MEMBER_ID",
    "FENCED": "FENCED_INSTANCE_ID",
    "ILLEGAL": "ILLEGAL_GENERATION",
    "REBALANCE": "REBALANCE_IN_PROGRESS",
    "ID": "MEMBER_ID_REQUIRED",
    "PROTOCOL": "INCONSISTENT_GROUP_PROTOCOL",
    "DEAD": "COORDINATOR_NOT_AVAILABLE",
    "NOTFOUND": "GROUP_ID_NOT_FOUND",
}

TABLE = """
# request     who        gen   Unknown    Empty      Preparing  Completing Stable     Dead

join-same     F          -     UNKNOWN    UNKNOWN    waits      NONE       NONE       DEAD
join-same     L          -     UNKNOWN    UNKNOWN    waits      NONE       waits>P    DEAD
join-same     S          -     UNKNOWN    UNKNOWN    waits      NONE       NONE       DEAD
join-same     S+s        -     UNKNOWN    UNKNOWN    waits      NONE       NONE       DEAD
join-same     F+s        -     UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
join-same     F+u        -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-same     S+u        -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-same     wrong      -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-same     wrong+s    -     UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
join-same     wrong+u    -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-same     missing    -     ID         ID         ID         ID         ID         DEAD
join-same     missing+s  -     waits>P    waits>P    waits      waits>P    recorded   DEAD
join-same     missing+u  -     waits>P    waits>P    waits      waits>P    waits>P    DEAD
join-same     pending    -     UNKNOWN    waits>P    waits      waits>P    waits>P    DEAD

join-changed  F          -     UNKNOWN    UNKNOWN    waits      waits>P    waits>P    DEAD
join-changed  L          -     UNKNOWN    UNKNOWN    waits      waits>P    waits>P    DEAD
join-changed  S          -     UNKNOWN    UNKNOWN    waits      waits>P    waits>P    DEAD
join-changed  S+s        -     UNKNOWN    UNKNOWN    waits      waits>P    waits>P    DEAD
join-changed  F+s        -     UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
join-changed  F+u        -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-changed  S+u        -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-changed  wrong      -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-changed  wrong+s    -     UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
join-changed  wrong+u    -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
join-changed  missing    -     ID         ID         ID         ID         ID         DEAD
join-changed  missing+s  -     waits>P    waits>P    waits      waits>P    recorded   DEAD
join-changed  missing+u  -     waits>P    waits>P    waits      waits>P    waits>P    DEAD
join-changed  pending    -     UNKNOWN    waits>P    waits      waits>P    waits>P    DEAD

# the one protocol that it still has was not the chosen one
join-other    F          -     UNKNOWN    UNKNOWN    waits      waits>P    waits>P    DEAD
join-other    missing+s  -     waits>P    waits>P    waits      waits>P    waits>P    DEAD

join-strange  F          -     UNKNOWN    UNKNOWN    PROTOCOL   PROTOCOL   PROTOCOL   DEAD
join-strange  missing    -     ID         ID         PROTOCOL   PROTOCOL   PROTOCOL   DEAD
join-strange  missing+s  -     waits>P    waits>P    PROTOCOL   PROTOCOL   PROTOCOL   DEAD
join-type     F          -     UNKNOWN    UNKNOWN    PROTOCOL   PROTOCOL   PROTOCOL   DEAD
join-type     missing    -     ID         ID         PROTOCOL   PROTOCOL   PROTOCOL   DEAD
join-none     F          -     UNKNOWN    PROTOCOL   PROTOCOL   PROTOCOL   PROTOCOL   DEAD
join-none     missing    -     PROTOCOL   PROTOCOL   PROTOCOL   PROTOCOL   PROTOCOL   DEAD

# before version 4, which gives an id first
join-old      missing    -     waits>P    waits>P    waits      waits>P    waits>P    DEAD
join-old      missing+u  -     waits>P    waits>P    waits      waits>P    waits>P    DEAD

sync-follower F          5     UNKNOWN    UNKNOWN    REBALANCE  waits      NONE       DEAD
sync-follower F          old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-follower F          none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-follower S          5     UNKNOWN    UNKNOWN    REBALANCE  waits      NONE       DEAD
sync-follower S          old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-follower S          none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-follower S+s        5     UNKNOWN    UNKNOWN    REBALANCE  waits      NONE       DEAD
sync-follower S+s        old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-follower S+s        none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-follower F+s        any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
sync-follower F+u        any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
sync-follower S+u        any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
sync-follower wrong      any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
sync-follower wrong+s    any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
sync-follower wrong+u    any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
sync-follower missing    any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
sync-follower missing+s  any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
sync-follower missing+u  any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD

sync-leader   L          5     UNKNOWN    UNKNOWN    REBALANCE  recorded>S NONE       DEAD
sync-leader   L          old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-leader   L          none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
sync-leader   L+s        any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
sync-leader   L+u        any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
# an assignment by who is not the leader is not taken
sync-leader   F          5     UNKNOWN    UNKNOWN    REBALANCE  waits      NONE       DEAD
# an inconsistent protocol type or name
sync-type     F          5     UNKNOWN    UNKNOWN    PROTOCOL   PROTOCOL   PROTOCOL   DEAD
sync-name     F          5     UNKNOWN    UNKNOWN    PROTOCOL   PROTOCOL   PROTOCOL   DEAD

heartbeat     F          5     UNKNOWN    UNKNOWN    REBALANCE  NONE       NONE       DEAD
heartbeat     F          old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
heartbeat     F          none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
heartbeat     S          5     UNKNOWN    UNKNOWN    REBALANCE  NONE       NONE       DEAD
heartbeat     S          old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
heartbeat     S          none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
heartbeat     S+s        5     UNKNOWN    UNKNOWN    REBALANCE  NONE       NONE       DEAD
heartbeat     S+s        old   UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
heartbeat     S+s        none  UNKNOWN    UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
heartbeat     F+s        any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
heartbeat     F+u        any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
heartbeat     S+u        any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
heartbeat     wrong      any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
heartbeat     wrong+s    any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
heartbeat     wrong+u    any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
heartbeat     missing    any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
heartbeat     missing+s  any   UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
heartbeat     missing+u  any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
heartbeat     pending    any   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD

commit        F          5     NOTFOUND   UNKNOWN    recorded   REBALANCE  recorded   DEAD
commit        F          old   NOTFOUND   UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
commit        F          none  recorded   recorded   ILLEGAL    ILLEGAL    ILLEGAL    DEAD
commit        S          5     NOTFOUND   UNKNOWN    recorded   REBALANCE  recorded   DEAD
commit        S          old   NOTFOUND   UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
commit        S          none  recorded   recorded   ILLEGAL    ILLEGAL    ILLEGAL    DEAD
commit        S+s        5     NOTFOUND   UNKNOWN    recorded   REBALANCE  recorded   DEAD
commit        S+s        old   NOTFOUND   UNKNOWN    ILLEGAL    ILLEGAL    ILLEGAL    DEAD
commit        S+s        none  recorded   recorded   ILLEGAL    ILLEGAL    ILLEGAL    DEAD
commit        F+s        5     NOTFOUND   UNKNOWN    FENCED     FENCED     FENCED     DEAD
commit        F+s        old   NOTFOUND   UNKNOWN    FENCED     FENCED     FENCED     DEAD
commit        F+s        none  recorded   recorded   FENCED     FENCED     FENCED     DEAD
commit        F+u        5     NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        F+u        old   NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        F+u        none  recorded   recorded   UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        S+u        5     NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        S+u        old   NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        S+u        none  recorded   recorded   UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        wrong      5     NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        wrong      old   NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        wrong      none  recorded   recorded   UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        wrong+s    5     NOTFOUND   UNKNOWN    FENCED     FENCED     FENCED     DEAD
commit        wrong+s    old   NOTFOUND   UNKNOWN    FENCED     FENCED     FENCED     DEAD
commit        wrong+s    none  recorded   recorded   FENCED     FENCED     FENCED     DEAD
commit        wrong+u    5     NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        wrong+u    old   NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        wrong+u    none  recorded   recorded   UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        missing    5     NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        missing    old   NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        missing    none  recorded   recorded   UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        missing+s  5     NOTFOUND   UNKNOWN    FENCED     FENCED     FENCED     DEAD
commit        missing+s  old   NOTFOUND   UNKNOWN    FENCED     FENCED     FENCED     DEAD
commit        missing+s  none  recorded   recorded   FENCED     FENCED     FENCED     DEAD
commit        missing+u  5     NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        missing+u  old   NOTFOUND   UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
commit        missing+u  none  recorded   recorded   UNKNOWN    UNKNOWN    UNKNOWN    DEAD
# before version 9, which names a group that is not found
commit-old    F          5     ILLEGAL    UNKNOWN    recorded   REBALANCE  recorded   DEAD

leave         F          -     UNKNOWN    UNKNOWN    NONE       NONE>P     NONE>P     DEAD
leave         L          -     UNKNOWN    UNKNOWN    NONE       NONE>P     NONE>P     DEAD
leave         S          -     UNKNOWN    UNKNOWN    NONE       NONE>P     NONE>P     DEAD
leave         S+s        -     UNKNOWN    UNKNOWN    NONE       NONE>P     NONE>P     DEAD
leave         F+s        -     UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
leave         F+u        -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
leave         S+u        -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
leave         wrong      -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
leave         wrong+s    -     UNKNOWN    UNKNOWN    FENCED     FENCED     FENCED     DEAD
leave         wrong+u    -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
leave         missing    -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
leave         missing+s  -     UNKNOWN    UNKNOWN    NONE       NONE>P     NONE>P     DEAD
leave         missing+u  -     UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    UNKNOWN    DEAD
leave         pending    -     UNKNOWN    NONE       NONE       NONE       NONE       DEAD

# outcomes of a deadline: `gone` or `stays` is the member
session       F          -     none       none       gone       gone>P     gone>P     none
session       L          -     none       none       stays      gone>P     gone>P     none
session       S          -     none       none       gone       gone>P     gone>P     none
session       pending    -     none       gone       gone       gone       gone       none
# only L has joined: F is dropped, S has an instance and stays
join-expiry   F          -     none       none       gone>C     none       none       none
join-expiry   L          -     none       none       stays>C    none       none       none
join-expiry   S          -     none       none       stays>C    none       none       none
# nobody has synced, or, in Stable, only L: the others are dropped
sync-expiry   F          -     none       none       none       gone>E     gone>P     none
sync-expiry   L          -     none       none       none       gone>E     stays>P    none
sync-expiry   S          -     none       none       none       gone>E     gone>P     none
"""

IDS = {
    "F": ("m-f", None),
    "L": ("m-l", None),
    "S": ("m-s", None),
    "wrong": ("m-x", None),
    "missing": ("", None),
}
WHO = ["F", "S", "S+s", "F+s", "F+u", "S+u"]
WHO += [f"{who}{instance}" for who in ("wrong", "missing") for instance in ("", "+s", "+u")]
GENERATIONS = {"5": 5, "old": 4, "none": -1, "-": 5}


def cells() -> list[tuple[str, str, str, str, str]]:
    """Request, who, generation, state and the cell."""
    found = []
    for line in TABLE.splitlines():
        if not line or line.startswith("#"):
            continue
        request, who, generation, *row = line.split()
        assert len(row) == len(STATES)
        generations = ["5", "old", "none"] if generation == "any" else [generation]
        for each in generations:
            for state, cell in zip(STATES, row, strict=True):
                found.append((request, who, each, state, cell))
    return found


def scene_in(state: str) -> Scene:
    """A group in this state, in generation 5, as far as it has members: L, F and S."""
    scene = Scene()
    if state == "Unknown":
        return scene
    members = [
        MemberRow(member_id, instance_id, "c", "/h", 60_000, 10_000, b"\0\0", member_id.encode())
        for member_id, instance_id in [("m-l", None), ("m-f", None), ("m-s", "s")]
    ]
    is_empty = state in ("Empty", "Dead")
    record = GroupMetadata(
        "g",
        protocol_type="consumer",
        generation_id=5 if state in ("Empty", "Dead", "Stable", "Preparing") else 4,
        protocol_name=None if is_empty else "range",
        leader_id=None if is_empty else "m-l",
        state_timestamp_ms=WALL_MS,
        members=[] if is_empty else members,
    )
    offset = OffsetCommitted("g", topic="other", partition=0, offset=1)
    scene.durable = [record.encode(), offset.encode()]
    scene.restart()
    if state == "Dead":
        scene.holds = True
        scene.delete_group()
    elif state == "Stable":
        # All know both protocols; F and S have not synced yet.
        give_both_protocols(scene)
        scene.group.round.unsynced = {"m-f": None, "m-s": None}
        scene.group.round.sync_deadline_ms = 60_000
    elif state == "Preparing":
        give_both_protocols(scene)
        scene.join("m-l")
    elif state == "Completing":
        give_both_protocols(scene)
        scene.join("m-l")
        scene.join("m-f")
        scene.join("m-s", "s")
    scene.answers.clear()
    scene.left = None
    return scene


def give_both_protocols(scene: Scene) -> None:
    """A log tells the chosen protocol only; these members know two."""
    now = scene.group.round
    for member_id, member in list(now.members.items()):
        now.members[member_id] = replace(member, protocols=BOTH)
    now.protocol_counts = {"range": 3, "roundrobin": 3}
    now.members_size = sum(member.size for member in now.members.values())
    scene.left = None


def identity(scene: Scene, who: str) -> tuple[str, str | None]:
    if who == "pending":
        # Given out by the group as it was before it died or became known.
        return next(iter(scene.group.round.pending_members), "m-pending"), None
    name, _, instance = who.partition("+")
    member_id, _ = IDS[name]
    return member_id, {"": None, "s": "s", "u": "unknown"}[instance]


def ask(scene: Scene, request: str, who: str, generation: str) -> tuple[str, str]:
    """Send a request: what comes at once, and what once its records are durable."""
    member_id, instance_id = identity(scene, who)
    generation_id = GENERATIONS[generation]
    given = tuple((each, b"new") for each in ("m-l", "m-f", "m-s"))
    scene.holds = True
    match request:
        case "join-same":
            ticket = scene.join(member_id, instance_id)
        case "join-changed":
            changed = (("range", b"changed"), BOTH[1])
            ticket = scene.join(member_id, instance_id, protocols=changed)
        case "join-other":
            ticket = scene.join(member_id, instance_id, protocols=BOTH[1:])
        case "join-strange":
            ticket = scene.join(member_id, instance_id, protocols=(("strange", b""),))
        case "join-type":
            ticket = scene.join(member_id, instance_id, protocol_type="connect")
        case "join-none":
            ticket = scene.join(member_id, instance_id, protocols=())
        case "join-old":
            ticket = scene.join(member_id, instance_id, version=3)
        case "sync-follower":
            ticket = scene.sync(member_id, generation_id, instance_id)
        case "sync-leader":
            ticket = scene.sync(member_id, generation_id, instance_id, assignments=given)
        case "sync-type":
            ticket = scene.sync(member_id, generation_id, protocol_type="connect")
        case "sync-name":
            ticket = scene.sync(member_id, generation_id, protocol_name="roundrobin")
        case "heartbeat":
            ticket = scene.heartbeat(member_id, generation_id, instance_id)
        case "commit":
            ticket = scene.commit_offsets(member_id, generation_id, instance_id)
        case "commit-old":
            ticket = scene.commit_offsets(member_id, generation_id, instance_id, version=8)
        case "leave":
            ticket = scene.leave(LeavingMember(member_id, instance_id))
        case _:
            raise AssertionError(request)
    at_once = told(scene, ticket)
    if scene.group.round.phase != DEAD:
        scene.commit()
    return at_once, told(scene, ticket)


def told(scene: Scene, ticket: int) -> str:
    """The error of an answer, or of the one member or partition that it is about."""
    answer = scene.answers.get(ticket)
    if answer is None:
        return "waits"
    codes = getattr(answer, "partition_error_codes", ())
    if isinstance(answer, LeaveAnswer):
        codes = answer.member_error_codes
    return errors.error_name(codes[0] if codes else answer.error_code)


def expire(scene: Scene, request: str, who: str) -> str:
    """Let one deadline pass: whether the member is there before and after."""
    member_id, _ = identity(scene, who)
    now = scene.group.round
    before = member_id in now.members or member_id in now.pending_members
    kind = {"session": "session", "join-expiry": "join", "sync-expiry": "sync"}[request]
    scene.holds = True
    due = {
        "session": lambda: scene.group.heartbeats[member_id].deadline_ms if before else None,
        "join": lambda: now.join_deadline_ms,
        "sync": lambda: now.sync_deadline_ms,
    }[kind]()
    scene.now_ms = 60_000 if due is None else due
    round_before = vars(now.copy())
    scene.expire(kind, member_id)
    if due is None or not before:
        assert vars(scene.group.round) == round_before
        return "none"
    now = scene.group.round
    return "stays" if member_id in now.members or member_id in now.pending_members else "gone"


@pytest.mark.parametrize(("request_", "who", "generation", "state", "cell"), cells())
def test_every_request_in_every_state_has_kafkas_answer(
    request_: str, who: str, generation: str, state: str, cell: str
) -> None:
    scene = scene_in(state)
    if who == "pending" and state not in ("Unknown", "Dead"):
        scene.join()
    phase_before = PHASE_NAMES[scene.group.round.phase]
    expected, _, phase = cell.partition(">")

    if request_ in ("session", "join-expiry", "sync-expiry"):
        assert expire(scene, request_, who) == expected
    else:
        at_once, once_durable = ask(scene, request_, who, generation)
        if expected == "recorded":
            assert (at_once, once_durable) == ("waits", "NONE")
        else:
            assert at_once == once_durable == SHORT.get(expected, expected)
    phase_after = PHASE_NAMES[scene.group.round.phase]
    assert phase_after.startswith(phase) if phase else phase_after == phase_before


def test_the_table_has_a_row_for_everybody_who_may_ask() -> None:
    rows = {(request, who, generation) for request, who, generation, _, _ in cells()}

    for who in WHO:
        assert ("join-same", who, "-") in rows
        assert ("join-changed", who, "-") in rows
        assert ("leave", who, "-") in rows
    for request, who, generation in product(
        ["sync-follower", "heartbeat", "commit"], WHO, ["5", "old", "none"]
    ):
        assert (request, who, generation) in rows
