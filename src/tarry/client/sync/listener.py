"""Listener: the events of a group that its user receives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base.ids import TopicPartition

if TYPE_CHECKING:
    from tarry.client.sync.consumer import Consumer


class Listener:
    """Listener to be subclassed and given as `listener=`.  Its methods are called inside `poll` (or
    the iteration, which polls) and `close`, and nowhere else; an error that one raises comes out of
    the poll or close.  A method may seek, pause, commit and look at positions, but not poll.  One
    that takes longer than `max.poll.interval.ms` loses the partitions."""

    def on_assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Take partitions that came in addition to those owned already; none if a rebalance brought
        none."""

    def on_revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Give up partitions; they are still owned until this method returns: commit here."""

    def on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Forget partitions that other members own already: a commit would be refused."""
