"""History of groups in a cluster: what any client was told, compared over time and brokers.

A generation of which SyncGroup has told is durable: its number is used for no other assignment, and
requests of older generations are refused.  A committed offset is a register: each read returns the
last commit, whichever broker coordinates.  A coordinator that does not know that it is deposed
may answer with an older state for as long as its followers' last fetch allows, and writes nothing.

A coordinator that has not read its log yet knows no member and answers every heartbeat without an
error, as Kafka's does.  Such a heartbeat proves no generation, and the member that got it goes on
in good faith until its next heartbeat.
"""

from __future__ import annotations

from typing import Final

from tarry.base.ids import TopicPartition
from tarry.cluster.etcd.etcd_store import ANSWER_MS_MAX
from tarry.partition.followers import TURNED_TO_MS
from tarry.simulation.product.history import ProductHistory

# A deposed coordinator, or one that waits for etcd, may answer with an older state for this long.
STALE_MS: Final = max(TURNED_TO_MS, ANSWER_MS_MAX) + 300

_NEVER: Final = 1 << 62


class CommitSeen:
    """Commit of a number, larger than all before it.  `answered_ms`: when it was known to be
    durable."""

    def __init__(self, number: int, broker: str, sent_ms: int) -> None:
        self.number = number
        self.broker = broker
        self.sent_ms = sent_ms
        self.answered_ms = _NEVER

    def __str__(self) -> str:
        return f"{self.number} (committed at {self.broker}, from {self.sent_ms} ms)"


class MovedOffset:
    """Committed offset of one partition, written and read by clients of all brokers."""

    def __init__(self) -> None:
        # Count of reads that were compared with an earlier commit.
        self.compared = 0
        self._commits: list[CommitSeen] = []

    def begin(self, broker: str, now_ms: int) -> CommitSeen:
        """Note a commit that leaves now."""
        seen = CommitSeen(len(self._commits) + 1, broker, now_ms)
        self._commits.append(seen)
        return seen

    def missed_by(self, number: int, broker: str, sent_ms: int) -> CommitSeen | None:
        """Return a newer commit that a read missed when it returned `number` (-1: no commit)."""
        told_ms = -1 if number < 1 else self._commits[number - 1].answered_ms
        found: CommitSeen | None = None
        for each in self._commits:
            if each.answered_ms >= sent_ms:
                continue
            self.compared += 1
            if each.sent_ms <= told_ms or each.number == number:
                continue
            if each.broker == broker or each.answered_ms < sent_ms - STALE_MS:
                found = each
        return found


class MovedGroup:
    """Generations of one group as its members were told of them, with what each was given."""

    def __init__(self, product_history: ProductHistory) -> None:
        self.product_history = product_history
        self.violations: list[str] = []
        # Count of assignments that were compared with another one of their generation.
        self.compared = 0
        # By generation: time at which a sync first told of it, and the partitions of each member.
        self._told_ms: dict[int, int] = {}
        self._given: dict[int, dict[str, list[TopicPartition]]] = {}
        # Times at which brokers began and ended to load the group; and begins of loads under way.
        self._loads: list[tuple[int, int]] = []
        self._loading: dict[str, int] = {}

    def note_loading(self, broker: str, now_ms: int, *, is_loading: bool) -> None:
        """Note whether a broker loads the group."""
        if is_loading:
            self._loading.setdefault(broker, now_ms)
        elif broker in self._loading:
            self._loads.append((self._loading.pop(broker), now_ms))

    def _was_loaded(self, from_ms: int, to_ms: int) -> bool:
        """Return whether any broker loaded the group between these moments."""
        ended = any(begun <= to_ms and from_ms <= end for begun, end in self._loads)
        return ended or any(begun <= to_ms for begun in self._loading.values())

    def on_joined(self, member: str, generation: int, sent_ms: int) -> None:
        """Check the generation in an answer to a join."""
        self._check_age("was let into", member, generation, sent_ms - STALE_MS)

    def on_heartbeat(self, member: str, generation: int, sent_ms: int, now_ms: int) -> None:
        """Check the generation of a heartbeat that was answered now without an error."""
        if self._was_loaded(sent_ms, now_ms):
            self.product_history.blind_heartbeats.setdefault(member, []).append(now_ms)
            return
        self._check_age("may go on in", member, generation, sent_ms - STALE_MS)

    def on_committed(self, member: str, generation: int, sent_ms: int) -> None:
        """Check an accepted commit: it is durable, so its generation must be the last."""
        self._check_age("could commit in", member, generation, sent_ms)

    def on_synced(
        self, member: str, generation: int, places: list[TopicPartition], now_ms: int
    ) -> None:
        """Check the partitions that a member was given in a generation."""
        self._told_ms.setdefault(generation, now_ms)
        given = self._given.setdefault(generation, {})
        self.compared += len(given) > 0
        for other, others in given.items():
            if other == member and others != places:
                self._violate(
                    f"{member} is given {places} in generation {generation}, and was given {others}"
                )
            common = [place for place in places if place in others]
            if other != member and common:
                self._violate(
                    f"{member} and {other} are both given {common} in generation {generation}"
                )
        given[member] = places

    def _check_age(self, what: str, member: str, generation: int, before_ms: int) -> None:
        if generation < 0:
            return
        for later, told_ms in self._told_ms.items():
            if later > generation and told_ms < before_ms:
                self._violate(
                    f"{member} {what} generation {generation}, and generation {later} "
                    f"had begun by {told_ms} ms"
                )
                return

    def _violate(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)
