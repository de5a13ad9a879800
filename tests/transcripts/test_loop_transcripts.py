"""The transcripts of members once more, with the core in the driver of the asyncio face.

What happens, and when, is the same to the millisecond.  Transcripts in which the user works on
records are left out: the loop goes on meanwhile, a member of the synchronous face only beats.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.client.client_coordinator import ClientCoordinator
from tests.support.client.loop_cluster import LoopCluster
from tests.transcripts.test_client_transcripts import FILES, Player

LOOP_FILES = [path for path in FILES if " work" not in path.read_text("utf-8")]


class LoopPlayer(Player):
    """Plays a transcript in an event loop whose clock stands still until all has happened."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = LoopCluster(brokers=2)
        self.coordinator = ClientCoordinator(self.cluster, self.say)


@pytest.mark.parametrize("path", LOOP_FILES, ids=[path.stem for path in LOOP_FILES])
def test_a_transcript_of_a_member_plays_the_same_in_an_event_loop(path: Path) -> None:
    player = LoopPlayer()
    written = path.read_text("utf-8")
    played: list[str] = []
    for line in written.splitlines():
        if line.startswith(">"):
            played += [line, *player.play(line[1:])]
        elif not line.startswith("  "):
            played.append(line)
    assert isinstance(player.cluster, LoopCluster)
    player.cluster.loop.close()

    assert "\n".join(played) + "\n" == written


def test_most_transcripts_are_played_in_a_loop() -> None:
    assert len(LOOP_FILES) >= 60
