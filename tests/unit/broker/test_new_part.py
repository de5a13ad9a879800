"""A part that the tests add: its own module, and one line of the list of services."""

from __future__ import annotations

from functools import partial

from tests.support.broker.admin_user import Operator
from tests.support.broker.role_counts import RoleCounts, serve_role_counts
from tests.support.broker.stand_in_member import join
from tests.support.metadata_stores import GivenChange

from tarry.base.partition_row import PartitionRow
from tarry.broker.lifecycle import SERVICES, start_broker
from tarry.cluster.state.records import (
    MetadataRecord,
    PartitionChanged,
    TopicCreated,
)
from tarry.simulation.by_hand import BrokerByHand

LIFE = 7
SHARED = b"shared".ljust(16, b".")


def counting_broker(counts: RoleCounts) -> BrokerByHand:
    services = [
        *SERVICES,
        partial(serve_role_counts, counts),
    ]  # fmt: skip
    return BrokerByHand(start=partial(start_broker, services=services))


def change(hand: BrokerByHand, *records: MetadataRecord) -> None:
    hand.broker.store.change(GivenChange(*records))
    hand.settle()


def row(leader: int, epoch: int) -> PartitionRow:
    return PartitionRow(leader, epoch, LIFE, epoch, [1, 2], [1, 2])


def test_it_counts_the_roles_that_a_broker_takes_and_gives_up() -> None:
    counts = RoleCounts()
    hand = counting_broker(counts)
    join(hand.broker, LIFE)

    created = [row(1, 0), row(1, 0), row(2, 0)]
    change(hand, TopicCreated(topic_id=SHARED, name="shared", partitions=created, configs={}))
    at_first = (dict(counts.taken), dict(counts.given_up))
    change(hand, PartitionChanged(topic_id=SHARED, index=0, row=row(2, 1)))
    change(hand, PartitionChanged(topic_id=SHARED, index=2, row=row(1, 1)))

    assert at_first == ({"shared": 2}, {})
    assert counts.taken == {"shared": 3}
    assert counts.given_up == {"shared": 1}


def test_it_receives_the_roles_that_a_start_finds() -> None:
    counts = RoleCounts()
    hand = counting_broker(counts)
    Operator(hand).create("orders", partitions=4)
    when_created = counts.taken["orders"]

    hand.crash()

    assert when_created == 4
    assert counts.taken["orders"] == 8
