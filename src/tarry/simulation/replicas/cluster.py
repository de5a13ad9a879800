"""Cluster of two peers: who leads which partition, and how far the other's copy goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.simulation.replicas.log import TransactionLog

TOPIC: Final = "sales"
TOPIC_ID: Final = b"sales-----------"
PEER_IDS: Final = (1, 2)


class Copy:
    """Follower's copy of a log, and what the leader knows of it."""

    def __init__(self) -> None:
        self.end_offset = 0
        # End of the copy as the leader knows it from the follower's last request.  A follower
        # that has lost its disk has less than this until its next request.
        self.known_end_offset = 0


class PeerCluster:
    """Logs of one topic: each is led by one peer and copied by the other."""

    def __init__(self, partitions: int) -> None:
        self.logs = [TransactionLog() for _ in range(partitions)]
        self.copies = [Copy() for _ in range(partitions)]
        self.addresses: dict[int, tuple[str, int]] = {
            peer_id: (f"peer-{peer_id}", 9092) for peer_id in PEER_IDS
        }
        # Leader of each partition.
        self._leaders = [PEER_IDS[index % len(PEER_IDS)] for index in range(partitions)]
        # By lagging peer, the leaders and epochs that it knew when it began to lag.
        self._lagging: dict[int, list[tuple[int, int]]] = {}
        # Called when waiting fetches may have an answer.
        self.on_change: Callable[[], None] | None = None

    def places(self) -> list[TopicPartition]:
        """Return all partitions."""
        return [(TOPIC, index) for index in range(len(self.logs))]

    def rack(self, peer_id: int) -> str:
        """Return the rack that a peer stands in."""
        return f"rack-{peer_id}"

    def leader_id(self, index: int) -> int:
        """Return the peer that leads a partition."""
        return self._leaders[index]

    def known_leader(self, peer_id: int, index: int) -> tuple[int, int]:
        """Return who leads a partition as far as a peer knows, and in which leader epoch."""
        known = self._lagging.get(peer_id)
        return self._now()[index] if known is None else known[index]

    def _now(self) -> list[tuple[int, int]]:
        return [
            (leader_id, log.leader_epoch)
            for leader_id, log in zip(self._leaders, self.logs, strict=True)
        ]

    def lag(self, peer_id: int) -> None:
        """Keep a peer from learning of new leaders until `catch_up`."""
        self._lagging.setdefault(peer_id, self._now())

    def catch_up(self, peer_id: int) -> None:
        """Let a peer learn of the present leaders."""
        self._lagging.pop(peer_id, None)

    def move(self, index: int) -> None:
        """Let the other peer lead a partition, in a new leader epoch: its copy is made whole."""
        log, copy = self.logs[index], self.copies[index]
        copy.end_offset = copy.known_end_offset = log.end_offset
        log.leader_epoch += 1
        self._leaders[index] = next(each for each in PEER_IDS if each != self._leaders[index])
        self.changed()

    def end_of(self, peer_id: int, index: int) -> int:
        """Return where the log or the copy of a peer ends."""
        if self.leader_id(index) == peer_id:
            return self.logs[index].end_offset
        return self.copies[index].end_offset

    def preferred(self, peer_id: int, index: int, rack: str, offset: int) -> int:
        """Return the follower in this rack that has the offset, as far as the leader `peer_id`
        knows; -1 if there is none, or if the leader is in this rack."""
        if not rack or self.rack(peer_id) == rack:
            return -1
        for other_id in PEER_IDS:
            if self.rack(other_id) == rack and offset <= self.copies[index].known_end_offset:
                return other_id
        return -1

    def replicate(self, index: int, batches: int) -> None:
        """Copy so many batches more, or none, and tell the leader how far the copy goes."""
        copy = self.copies[index]
        for batch in self.logs[index].batches:
            if batches and batch.offset >= copy.end_offset:
                copy.end_offset = batch.end_offset
                batches -= 1
        copy.known_end_offset = copy.end_offset
        self.changed()

    def lose_copy(self, index: int) -> None:
        """Lose the disk under a copy."""
        self.copies[index].end_offset = 0

    def changed(self) -> None:
        """Tell the peers that there is more to read."""
        if self.on_change is not None:
            self.on_change()
