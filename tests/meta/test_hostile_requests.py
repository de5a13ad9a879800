"""The program that sends hostile requests beside members of groups: what it says is the broker's.

It had passed members over whose number is no multiple of a share, and told that the broker had
ended their sessions.
"""

from collections import Counter

from tests.support.processes.hostile_requests import (
    HEARTBEAT_EVERY_S,
    HEARTBEATS_AT_ONCE,
    MEMBERS,
    SESSION_MS,
    Member,
    shares,
)

OF_ONE_BROKER_OF_THREE = 666


def test_each_member_sends_one_heartbeat_in_each_round() -> None:
    members = [Member(f"group-{number}", "", 1) for number in range(OF_ONE_BROKER_OF_THREE)]

    sent = Counter(each.group for share in shares(members) for each in share)

    assert sent == {each.group: 1 for each in members}


def test_a_round_of_all_members_is_much_shorter_than_a_session() -> None:
    rounds_s = MEMBERS / HEARTBEATS_AT_ONCE * HEARTBEAT_EVERY_S

    assert rounds_s * 1000 <= SESSION_MS / 4
