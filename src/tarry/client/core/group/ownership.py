"""Ownership: the partitions that a member owns and will own, and the events that its user has not
seen.

A new assignment stays a `target` until the user is called back.  Lost and revoked partitions come
before assigned ones: they are reported as revoked while the member still owns them, and as lost
afterwards.
"""

from __future__ import annotations

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import GENERATION_UNKNOWN
from tarry.client.core.group.events import ASSIGNED, LOST, REVOKED, GroupEvent


class Ownership:
    """Partitions of one member; `next` returns the next event, `begin` and `end` enclose its
    callback."""

    def __init__(self) -> None:
        self.owned: list[TopicPartition] = []
        # Generation that assigned the owned partitions; a leader trusts the newest claim.
        self.generation_id = GENERATION_UNKNOWN
        # Number of assignments reported to the user.
        self.assignments = 0
        self.target: list[TopicPartition] | None = None
        # Partitions to give back before the next join.
        self.to_give: list[TopicPartition] = []
        self.is_lost = False
        # True if partitions were given up, so that another round can assign them to other members.
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
        """Begin the next event: lost partitions are removed now, assigned ones added now, and
        revoked ones are owned until `end`."""
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
        """End the event after its callback.  Partitions that were lost meanwhile stay lost."""
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
        """Put back a revocation whose callback was not called; it becomes the next event again."""
        assert self.event is not None
        assert self.event.kind == REVOKED
        self.event = None

    def give_all(self) -> None:
        """Mark all partitions to be given back, because the member leaves; lost ones stay lost."""
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
