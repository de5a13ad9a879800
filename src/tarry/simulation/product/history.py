"""History of the product's clients: what their users were given, told, and have committed."""

from __future__ import annotations

from typing import NamedTuple

from tarry.base.ids import TopicPartition


class HandOut(NamedTuple):
    """Consecutive records of one partition that a user got from one poll."""

    now_ms: int
    client: str
    place: TopicPartition
    # Offsets of the first and the last record, and all values.
    first: int
    last: int
    values: list[bytes]

    def __str__(self) -> str:
        topic, partition = self.place
        return f"{self.client} was handed out {self.first}..{self.last} of {topic}-{partition}"


class Told(NamedTuple):
    """Event of the group of which a user was told."""

    now_ms: int
    client: str
    kind: int
    places: list[TopicPartition]
    # Committed offsets of the group at that moment, as far as any member knew.
    committed: dict[TopicPartition, int]


class ProductHistory:
    """History of one run as the users of the product's clients saw it, in order of time."""

    def __init__(self) -> None:
        self.handed_out: list[HandOut] = []
        # Values whose producers have a good receipt, by partition.
        self.promised: dict[tuple[bytes, int], list[bytes]] = {}
        self.told: list[Told] = []
        # The largest offset that a member knew to be committed, by partition.
        self.committed: dict[TopicPartition, int] = {}
        # Partitions whose last commit, before they went to another member, was refused.
        self.uncommitted: dict[TopicPartition, None] = {}
        # Time from which on no client and no broker fails any more; -1 before it.
        self.calm_ms = -1
        # By client, times of answers to heartbeats from coordinators that may not have known the
        # client; and the time for which such an answer lets a member go on.
        self.blind_heartbeats: dict[str, list[int]] = {}
        self.session_ms = 0

    def is_in_good_faith(self, client: str, now_ms: int) -> bool:
        """Return whether a coordinator that knew nothing may have let this member go on."""
        since_ms = now_ms - self.session_ms
        return any(since_ms <= heard <= now_ms for heard in self.blind_heartbeats.get(client, []))
