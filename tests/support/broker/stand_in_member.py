"""A membership for tests: a broker of a cluster without an etcd."""

from __future__ import annotations

from tarry.base.doors import Event
from tarry.broker.broker import Broker
from tarry.broker.membership.membership import ClusterMembership


class StandInMember(ClusterMembership):
    """Membership of a broker that lives in `epoch`; -1: its life is over."""

    def __init__(self, broker: Broker, epoch: int) -> None:
        self._broker = broker
        self.epoch = epoch

    @property
    def is_serving(self) -> bool:
        return True

    @property
    def own_epoch(self) -> int:
        return self.epoch

    @property
    def ending_epoch(self) -> int:
        return -1

    @property
    def is_alive(self) -> bool:
        return self.epoch >= 0

    @property
    def has_lived(self) -> bool:
        return True

    def is_expected(self, broker_id: int) -> bool:
        return False

    def on_event(self, event: Event) -> None:
        pass

    def stop(self) -> None:
        self._broker.shutdown.begin()

    def leave(self) -> bool:
        return True

    def on_last_event(self, event: Event) -> None:
        pass


def join(broker: Broker, epoch: int) -> StandInMember:
    """Have a broker live in a cluster from now on."""
    member = StandInMember(broker, epoch)
    broker.neighbours.is_member = True
    broker.neighbours.join(member, None)
    return member
