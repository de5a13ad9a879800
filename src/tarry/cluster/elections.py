"""Elections that an operator asks for: of the preferred leaders, or of any replica that lives."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.cluster import hand_over, unclean
from tarry.cluster.records import PartitionRow
from tarry.cluster.replica_choice import Refusal
from tarry.cluster.row_changes import is_serving
from tarry.cluster.row_requests import RowDecision, RowWish
from tarry.cluster.state import ClusterState, TopicState, is_led

# Types of an election (KIP-460).
PREFERRED: Final = 0
UNCLEAN: Final = 1


class ElectionWish(RowWish):
    """A partition that is to be led by its first replica, or uncleanly by any that serves."""

    __slots__ = ("is_unclean",)

    def __init__(self, topic: str, index: int, *, is_unclean: bool) -> None:
        super().__init__(topic, index)
        self.is_unclean = is_unclean

    def decide(
        self, view: ClusterState, topic: TopicState, row: PartitionRow
    ) -> RowDecision | None:
        if self.is_unclean:
            return elect_uncleanly(view, row)
        return elect_preferred(view, row)


def elect_preferred(view: ClusterState, row: PartitionRow) -> RowDecision:
    """Have the first replica lead; `Refusal` if it does already, or cannot."""
    preferred = row.replicas[0] if row.replicas else -1
    if not view.brokers or (row.leader_id == preferred and is_led(view, row)):
        raise Refusal(
            errors.ELECTION_NOT_NEEDED, f"broker {preferred}, the preferred leader, leads already"
        )
    if preferred not in row.isr:
        raise Refusal(
            errors.PREFERRED_LEADER_NOT_AVAILABLE,
            f"broker {preferred}, the preferred leader, is not in sync yet: wait until it is",
        )
    if not is_serving(view, preferred):
        raise Refusal(
            errors.PREFERRED_LEADER_NOT_AVAILABLE,
            f"broker {preferred}, the preferred leader, does not serve: start it first",
        )
    after = hand_over.handed_over(view, row, preferred)
    return RowDecision(after, hand_over.guards_of(after))


def elect_uncleanly(view: ClusterState, row: PartitionRow) -> RowDecision:
    """Have a replica lead though records may be lost by it; `Refusal` if somebody leads, or no
    replica serves.  A member of the isr comes first: its log was not whole, but may be so nearly.
    """
    if not view.brokers or is_led(view, row):
        raise Refusal(
            errors.ELECTION_NOT_NEEDED, f"broker {row.leader_id} leads: nothing has to be lost"
        )
    in_sync = [each for each in row.replicas if each in row.isr and is_serving(view, each)]
    elected = in_sync[0] if in_sync else unclean.unclean_successor(view, row)
    if elected < 0:
        replicas = ", ".join(map(str, row.replicas))
        raise Refusal(
            errors.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"none of the replicas, {replicas}, serves: start one of them first",
        )
    after = unclean.elected_uncleanly(view, row, elected)
    return RowDecision(after, unclean.guards_of(after))
