"""Every error code, to every request of a member, in every state: what becomes of the member.

The rules are the client's paper's, in one table; what no row names is raised, or repeated if the
code says that it passes.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.support.client.group_member import PLACE, GroupScene

from tarry.base import errors
from tarry.client.core.group.events import LOST
from tarry.client.core.group.membership import FAILED, STABLE
from tarry.client.core.group.offsets.committer import Commit
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.errors import BrokerError, CommitFailed, GroupFailed
from tarry.protocol import api_keys

FATAL = {
    errors.INCONSISTENT_GROUP_PROTOCOL,
    errors.INVALID_GROUP_ID,
    errors.INVALID_SESSION_TIMEOUT,
    errors.GROUP_AUTHORIZATION_FAILED,
    errors.GROUP_MAX_SIZE_REACHED,
    errors.FENCED_INSTANCE_ID,
}
GIVES_UP = {errors.ILLEGAL_GENERATION, errors.UNKNOWN_MEMBER_ID}
# The group goes on, and so does the member, without a word to the user.
PASSES = {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.REBALANCE_IN_PROGRESS,
} | {code for code, row in errors.ERRORS.items() if row.retriable and code not in FATAL}

CODES = [*sorted(code for code in errors.ERRORS if code != errors.NONE), 9_999]


class Outcome(NamedTuple):
    """How the member stands a while after the answer."""

    is_failed: bool
    is_stable: bool
    was_lost: bool
    raised: list[type]


def outcome_of(scene: GroupScene) -> Outcome:
    membership = scene.core.membership
    return Outcome(
        membership.state == FAILED,
        membership.state == STABLE and membership.owned == [PLACE],
        any(event.kind == LOST for event in scene.told),
        [type(error) for error in scene.raised],
    )


def polled(scene: GroupScene) -> None:
    """Long enough for pauses and a new round, twice so that what is raised once is over."""
    for _ in range(3):
        scene.poll(3_000)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("api_key", [api_keys.JOIN_GROUP, api_keys.SYNC_GROUP])
def test_a_code_to_a_first_join_or_sync(api_key: int, code: int) -> None:
    scene = GroupScene()
    scene.codes[api_key] = [code]
    scene.core.subscribe(["t"])

    polled(scene)

    if code in FATAL:
        assert outcome_of(scene) == Outcome(True, False, False, [GroupFailed] * 3)
        assert len(scene.requests(api_key)) == 1
    elif code in PASSES or code in GIVES_UP or code == errors.MEMBER_ID_REQUIRED:
        assert outcome_of(scene) in (
            Outcome(False, True, False, []),
            # A sync has no use for it.
            Outcome(False, True, False, [BrokerError]),
        )
        assert len(scene.requests(api_key)) == 2
    else:
        assert outcome_of(scene) == Outcome(False, True, False, [BrokerError])


@pytest.mark.parametrize("code", CODES)
def test_a_code_to_a_heartbeat_in_stable(code: int) -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.join()
    scene.codes[api_keys.HEARTBEAT] = [code]

    polled(scene)

    if code in FATAL:
        assert outcome_of(scene) == Outcome(True, False, True, [GroupFailed] * 3)
    elif code in GIVES_UP:
        assert outcome_of(scene) == Outcome(False, True, True, [])
    elif code in PASSES:
        assert outcome_of(scene) == Outcome(False, True, False, [])
    else:
        assert outcome_of(scene) == Outcome(False, True, False, [BrokerError])


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_code_to_the_join_of_a_second_round(assignor: str, code: int) -> None:
    scene = GroupScene(auto_offset_reset="earliest", partition_assignment_strategy=assignor)
    scene.join()
    scene.codes[api_keys.HEARTBEAT] = [errors.REBALANCE_IN_PROGRESS]
    scene.codes[api_keys.JOIN_GROUP] = [code]

    polled(scene)

    # An eager member gives back its partitions before it joins; a cooperative one may lose them.
    has_much = assignor == "cooperative-sticky"
    if code in FATAL:
        assert outcome_of(scene) == Outcome(True, False, has_much, [GroupFailed] * 3)
    elif code in GIVES_UP:
        assert outcome_of(scene) == Outcome(False, True, has_much, [])
    elif code in PASSES or code == errors.MEMBER_ID_REQUIRED:
        assert outcome_of(scene) == Outcome(False, True, False, [])
    else:
        assert outcome_of(scene) == Outcome(False, True, False, [BrokerError])


@pytest.mark.parametrize("code", CODES)
def test_a_code_to_a_commit(code: int) -> None:
    scene = GroupScene(auto_offset_reset="earliest", enable_auto_commit=False)
    scene.join()
    scene.codes[api_keys.OFFSET_COMMIT] = [code]
    commit = Commit({PLACE: CommittedOffset(7)})

    scene.core.committer.begin(commit, 10_000, scene.cluster.now_ms)
    scene.cluster.run_until(lambda: commit.is_done)
    polled(scene)

    if code in FATAL:
        assert isinstance(commit.error, GroupFailed)
        assert outcome_of(scene) == Outcome(True, False, True, [GroupFailed] * 3)
    elif code in GIVES_UP:
        assert isinstance(commit.error, CommitFailed)
        assert not commit.error.is_retriable
        assert outcome_of(scene) == Outcome(False, True, True, [])
    elif code == errors.REBALANCE_IN_PROGRESS:
        assert isinstance(commit.error, CommitFailed)
        assert commit.error.is_retriable
        assert outcome_of(scene) == Outcome(False, True, False, [])
    elif code in PASSES:
        assert commit.error is None
        assert scene.committed == 7
        assert outcome_of(scene) == Outcome(False, True, False, [])
    else:
        assert isinstance(commit.error, BrokerError)
        assert outcome_of(scene) == Outcome(False, True, False, [])


@pytest.mark.parametrize("code", CODES)
def test_a_code_to_the_search_for_the_coordinator(code: int) -> None:
    scene = GroupScene()
    scene.codes[api_keys.FIND_COORDINATOR] = [code]
    scene.core.subscribe(["t"])

    polled(scene)

    if code in FATAL:
        assert outcome_of(scene) == Outcome(True, False, False, [GroupFailed] * 3)
    else:
        assert outcome_of(scene).is_stable
        assert scene.raised == [] or isinstance(scene.raised[0], BrokerError)
        passes = code in PASSES and code != errors.REBALANCE_IN_PROGRESS
        assert (scene.raised == []) == passes


@pytest.mark.parametrize("code", CODES)
def test_a_code_to_an_offset_fetch_is_never_taken_for_no_offset(code: int) -> None:
    scene = GroupScene(auto_offset_reset="earliest", enable_auto_commit=False)
    scene.committed = 5
    scene.cluster.topics["t"].logs[0].add(*[b"x"] * 9)
    scene.codes[api_keys.OFFSET_FETCH] = [code, code]
    scene.core.subscribe(["t"])

    polled(scene)

    position = scene.core.position(PLACE)
    if position.error is None:
        assert position.position == 5
    else:
        assert position.position == -1
        assert isinstance(position.error, BrokerError)
