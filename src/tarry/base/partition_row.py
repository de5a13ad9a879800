"""Row of a partition: its leader, its replicas, and those in sync.

The row has this one form from etcd to the partition that a broker hosts: the value of a `parts/…`
key is decoded into it, the cluster's state keeps it, and a hosted partition's leadership takes it.
"""

from __future__ import annotations

from typing import Final

import msgspec


class PartitionRow(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=1):
    """Row of a partition.  Its value in etcd is the format number 1 and these fields in this order.

    Leadership is bound to a life of the leader, its `broker_epoch`; -1 if a broker has a store of
    its own.  `adding` and `removing` are the replicas that a reassignment adds and removes.
    `unclean_epoch` is the last leader epoch that began with an unclean election, -1 if none did.
    """

    leader_id: int
    leader_epoch: int
    broker_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    adding: list[int] = []
    removing: list[int] = []
    unclean_epoch: int = -1

    def still(self) -> PartitionRow:
        """Return this row without a leader, as of a frozen topic: no broker may change it."""
        return PartitionRow(-1, self.leader_epoch, -1, self.partition_epoch, self.replicas, [])


# Row of an unknown partition, which no broker has.
NOWHERE: Final = PartitionRow(-1, 0, -1, 0, [], [])
