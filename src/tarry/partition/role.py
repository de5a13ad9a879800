"""Role of a replica: what the metadata say about its partition, as seen by one broker."""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    """Role of a replica, as its partition's row and the broker's own life give it.

    `is_leader`: the row names this broker, and this broker is still in the life that the row names,
    its `leader_broker_epoch`.  Who has restarted since leads nothing.
    """

    leader_id: int
    leader_epoch: int
    leader_broker_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    unclean_epoch: int
    is_leader: bool
