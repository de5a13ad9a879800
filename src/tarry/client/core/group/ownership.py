"""Ownership: partitions that a member reads, partitions that it will read, and events that its user
has not been told yet.

A new assignment is only a `target` until the user heard of it.  What goes is said before what
comes, and each thing at its time: revoked while it is still ours, lost when it is not any more.
"""

from __future__ import annotations

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import GENERATION_UNKNOWN
from tarry.client.core.group.events import ASSIGNED, LOST, REVOKED, GroupEvent


class Ownership:
    """Partitions of one member; `next` names the next event, `begin` and `end` stand around telling
    it."""

    def __init__(self) -> None:
        self.owned: list[TopicPartition] = []
        # The generation that gave what is owned; a leader believes the newest.
        self.generation_id = GENERATION_UNKNOWN
        # Count of assignments that the user was told.
        self.assignments = 0
        self.target: list[TopicPartition] | None = None
        # What has to be given back before the next join.
        self.to_give: list[TopicPartition] = []
        self.is_lost = False
        # A part was given up for others, who get it in one more round.
        self.gave_up = False
        self.event: GroupEvent | None = None

    def next(self) -> GroupEvent | None:
        if self.is_lost:
            return GroupEvent(LOST, list(self.owned))
        if self.to_give:
            return GroupEvent(REVOKED, list(self.to_give))
        if self.target is None:
            return None
        given_up = [place for place in self.owned if place not in self.target]
        if given_up:
            return GroupEvent(REVOKED, given_up)
        return GroupEvent(ASSIGNED, [place for place in self.target if place not in self.owned])

    def begin(self, generation_id: int) -> GroupEvent | None:
        """Begin the next event to tell: lost partitions are gone before the user is told, assigned
        ones are there, revoked ones stay until the user was told."""
        assert self.event is None
        event = self.next()
        self.event = event
        if event is None:
            return None
        if event.kind == LOST:
            self.is_lost = False
            self.owned = []
        elif event.kind == ASSIGNED:
            assert self.target is not None
            self.owned = self.target
            self.assignments += 1
            self.generation_id = generation_id
            self.target = None
        return event

    def end(self) -> None:
        """End the event that the user was told.  Partitions that were lost meanwhile stay lost."""
        event = self.event
        assert event is not None
        self.event = None
        if event.kind != REVOKED:
            return
        self.owned = [place for place in self.owned if place not in event.places]
        self.gave_up = self.gave_up or self.target is not None
        self.to_give = []
        self.is_lost = self.is_lost and bool(self.owned)

    def put_back(self) -> None:
        """Put back a revocation that was begun and not told: it is the next event once more."""
        assert self.event is not None
        assert self.event.kind == REVOKED
        self.event = None

    def give_all(self) -> None:
        """Give everything back, for the member leaves; what is lost stays lost."""
        self.target = None
        self.to_give = list(self.owned)

    def lose(self) -> None:
        """Lose all partitions: the coordinator has removed the member, and other members own
        them."""
        self.target = None
        self.to_give = []
        self.gave_up = False
        self.generation_id = GENERATION_UNKNOWN
        self.is_lost = bool(self.owned)
