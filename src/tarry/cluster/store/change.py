"""A change of the metadata, from the moment that somebody wants it until it has ended."""

from __future__ import annotations

from typing import Generic, TypeVar

from tarry.cluster.state.records import MetadataRecord
from tarry.cluster.state.state import ClusterState


class Change:
    """Change of metadata that somebody has asked for.  Who asked waits for this object to end.

    A store calls `decide` once, or again if other changes were made meanwhile.  The change ends
    once: it is applied, or it is refused and `refusal` says why.
    """

    def __init__(self) -> None:
        # open: `RowsChange.rest` clears it in a copy of an ended change, to ask for the copy
        self.is_ended = False
        # open: "" unless the change was refused
        self.refusal = ""

    @property
    def wished(self) -> Change:
        """The change that was asked for; another object if this one only listens to that
        change's end.
        """
        return self

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        """Return the records that make the change; none if the state is already as wished.

        Values that were drawn at random, such as a topic id, are kept for the next call.  The view
        is read and not changed.
        """
        raise NotImplementedError


Outcome = TypeVar("Outcome")


class ChangeOfMany(Change, Generic[Outcome]):
    """A change of several topics or resources, each with an outcome of its own."""

    outcomes: list[Outcome]

    def fail(self, error_code: int, message: str) -> None:
        """Refuse everything in the change that was to be done, with this error."""
        raise NotImplementedError
