"""Topic: a topic, its partitions and the brokers, as an answer of the cluster describes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tarry.base.errors import NONE
from tarry.link.events import Address

ZERO_ID: Final = bytes(16)
NO_LEADER: Final = -1


class BrokerMetadata(NamedTuple):
    """Broker with the address at which clients reach it."""

    broker_id: int
    address: Address
    rack: str | None


class PartitionMetadata:
    """A partition's leader and replicas; `leader_id` is -1 while there is no leader."""

    def __init__(
        self,
        index: int,
        leader_id: int,
        leader_epoch: int = -1,
        *,
        error_code: int = NONE,
        replicas: Iterable[int] = (),
        isr: Iterable[int] = (),
        offline_replicas: Iterable[int] = (),
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replicas = list(replicas)
        self.isr = list(isr)
        self.offline_replicas = list(offline_replicas)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionMetadata) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return self.index

    def __repr__(self) -> str:
        return f"PartitionMetadata({self.index}, leader {self.leader_id})"


class Topic:
    """Topic with its partitions by index; with an `error_code` these may be unknown."""

    def __init__(self, name: str, error_code: int = NONE, topic_id: bytes = ZERO_ID) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.is_internal = False
        self.partitions: dict[int, PartitionMetadata] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"

    @property
    def needs_refresh(self) -> bool:
        """True if a later answer may bring more, because there is an error or a partition without
        leader."""
        if self.error_code != NONE or not self.partitions:
            return True
        return any(one.leader_id == NO_LEADER for one in self.partitions.values())


def brokers_of(endpoints: Iterable[Any]) -> dict[int, BrokerMetadata]:
    """Return the brokers of an answer by id; each message has its own class of broker."""
    return {
        one.node_id: BrokerMetadata(one.node_id, Address(one.host, one.port), one.rack)
        for one in endpoints
    }
