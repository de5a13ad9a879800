"""A change of the metadata, from the moment that somebody wants it until it has ended."""

from __future__ import annotations

from typing import Generic, TypeVar

from tarry.cluster.state.records import MetadataRecord
from tarry.cluster.state.state import ClusterState


class Change:
    """Change of metadata that is asked for; whoever waits, waits for this object to end.

    A store calls `decide` once or, when others have changed the metadata meanwhile, again.  The
    change ends once: it is applied, or it is refused and `refusal` says why.
    """

    def __init__(self) -> None:
        # open: a copy of a change that has ended is asked for again
        self.is_ended = False
        # open: "" unless the change was refused
        self.refusal = ""

    @property
    def wished(self) -> Change:
        """The change itself, where this one only listens to how it ends."""
        return self

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        """Return the records that make the change; none if everything is as it should be.

        What was drawn by chance stays for the next call.  The view is read and not changed.
        """
        raise NotImplementedError


Outcome = TypeVar("Outcome")


class ChangeOfMany(Change, Generic[Outcome]):
    """A change of several topics or resources, each with an outcome of its own."""

    outcomes: list[Outcome]

    def fail(self, error_code: int, message: str) -> None:
        """Refuse what was not done after all."""
        raise NotImplementedError
