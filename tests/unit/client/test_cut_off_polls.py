"""Polls that end before they have told the user what they had to tell."""

from __future__ import annotations

from typing import Any

from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.group.events import REVOKED
from tarry.client.core.operation import Wait
from tarry.protocol import api_keys


def test_a_revocation_whose_commit_was_under_way_is_told_by_the_next_poll() -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.cluster.topics["t"].logs[0].add(b"0")
    cluster, core = scene.cluster, scene.core
    scene.join()
    while not perform(cluster, core.begin_poll(10, 2_000, cluster.now_ms)):
        pass
    told: list[tuple[int, Any]] = []
    sound = cluster._rules[api_keys.OFFSET_COMMIT]

    def silent(cluster: ScriptedCluster, seen: Seen) -> Any:
        return SILENCE

    # Others join; the commit before the revocation is not answered for a while.
    cluster.rule(api_keys.OFFSET_COMMIT, silent)
    scene.codes[api_keys.HEARTBEAT] = [errors.REBALANCE_IN_PROGRESS]
    cut_off = core.begin_poll(10, 60_000, cluster.now_ms)
    while not cluster.requests(api_keys.OFFSET_COMMIT):
        assert isinstance(cut_off.step(cluster.now_ms), Wait)
        cluster.run_for(10)
    cut_off.end(cluster.now_ms)
    owned = list(core.membership.owned)
    cluster.rule(api_keys.OFFSET_COMMIT, sound)

    perform(
        cluster,
        core.begin_poll(10, 60_000, cluster.now_ms),
        lambda event: told.append((event.kind, event.places)),
    )

    assert owned == [PLACE]
    assert told[0] == (REVOKED, [PLACE])
    assert scene.committed == 1
