"""Elections that an operator asks for: of the preferred leaders, or of any replica that serves."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions import hand_over, unclean
from tarry.cluster.decisions.replica_choice import Refusal
from tarry.cluster.decisions.row_changes import is_serving
from tarry.cluster.decisions.row_requests import RowDecision, RowWish
from tarry.cluster.state.state import ClusterState, TopicState, is_led

# Types of an election (KIP-460).
PREFERRED: Final = 0
UNCLEAN: Final = 1


class ElectionWish(RowWish):
    """A partition that is to be led by its first replica, or uncleanly by any that serves."""

    __slots__ = ("is_unclean", "settings")

    def __init__(self, topic: str, index: int, settings: Settings, *, is_unclean: bool) -> None:
        super().__init__(topic, index)
        self.settings = settings
        self.is_unclean = is_unclean

    def decide(
        self, view: ClusterState, topic: TopicState, row: PartitionRow
    ) -> RowDecision | None:
        if self.is_unclean:
            is_flushed = unclean.is_flushed(topic, self.settings)
            return elect_uncleanly(view, row, is_flushed=is_flushed)
        return elect_preferred(view, row)


def elect_preferred(view: ClusterState, row: PartitionRow) -> RowDecision:
    """Have the first replica lead; raise `Refusal` if it leads already, or cannot.

    A partition without a leader is left alone.  A replica in sync with a whole log claims it by
    itself; a serving one that does not claim it may lack records, and this election loses none.
    """
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
    if not is_led(view, row):
        raise Refusal(
            errors.PREFERRED_LEADER_NOT_AVAILABLE,
            "nobody leads it: a replica in sync whose log is whole does so within a moment; if "
            "none does, only an unclean election helps, which may lose records",
        )
    after = hand_over.handed_over(view, row, preferred)
    return RowDecision(after, hand_over.guards_of(after))


def elect_uncleanly(view: ClusterState, row: PartitionRow, *, is_flushed: bool) -> RowDecision:
    """Have a replica lead, even if that loses records.

    A member of the isr comes first, unless its disk has lost what it had flushed.  Raises `Refusal`
    if the partition has a leader, or no replica serves.
    """
    if not view.brokers or is_led(view, row):
        raise Refusal(
            errors.ELECTION_NOT_NEEDED, f"broker {row.leader_id} leads: nothing has to be lost"
        )
    in_sync = [each for each in row.replicas if each in row.isr and is_serving(view, each)]
    doubted = _doubted_member(view, row) if is_flushed else -1
    if in_sync and doubted < 0:
        elected = in_sync[0]
    else:
        elected = unclean.unclean_successor(view, row, last=doubted)
    if elected < 0:
        replicas = ", ".join(map(str, row.replicas))
        raise Refusal(
            errors.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"none of the replicas, {replicas}, serves: start one of them first",
        )
    after = unclean.elected_uncleanly(view, row, elected)
    return RowDecision(after, unclean.guards_of(after))


def _doubted_member(view: ClusterState, row: PartitionRow) -> int:
    """Return the last member of the isr if it serves and its log is certainly not whole; else -1.

    That member led in an earlier life, so the partition had no leader when its present life began.
    A broker claims what it may before it serves; as this one has not, its log is not whole.
    """
    leader_id = row.leader_id
    is_certain = row.isr == [leader_id] and is_serving(view, leader_id) and not is_led(view, row)
    return leader_id if is_certain else -1
