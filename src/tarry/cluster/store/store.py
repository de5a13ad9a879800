"""The contract of metadata stores: a change goes in, and ends as an event.

The embedded store keeps the metadata in a log of this broker; a store that several brokers share
fits behind the same contract.
"""

from __future__ import annotations

from typing import Protocol

from tarry.base.limits import PARTITIONS_PER_CHANGE_MAX, TOPICS_PER_CHANGE_MAX
from tarry.cluster.state.levels import THIS_RELEASE, Release
from tarry.cluster.state.records import MetadataRecord
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change


class StoreListener(Protocol):
    """Listener to a store: how changes end, and what others have changed."""

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Hear that the records are durable and in the store's state, which has at least this
        version.

        `change` is None for what others have changed.
        """

    def on_refused(self, change: Change) -> None:
        """Hear that nothing of the change is kept; its `refusal` says why."""


class MetadataStore:
    """The base of all stores.

    `state` is what is durable: clients are answered from it.  `view` is what the next change is
    decided on, which may be ahead of it.  `version` is that of `state`, and only grows.
    """

    # What keeps the metadata, and what the log says of a change that it did not keep.
    keeper = "the disk"
    refused = "not done, the disk refused it"
    # So many topics one change may create, grow, delete or give other settings, and so many
    # partitions they may have together where they are written whole.
    topics_max = TOPICS_PER_CHANGE_MAX
    partitions_max = PARTITIONS_PER_CHANGE_MAX

    def __init__(self, release: Release = THIS_RELEASE) -> None:
        # The release that this broker runs, with the feature levels that it knows.
        self.release = release
        self.state = ClusterState()
        self.version = 0
        self._listeners: list[StoreListener] = []

    @property
    def view(self) -> ClusterState:
        """The newest state that decisions may rest on."""
        return self.state

    def listen(self, listener: StoreListener) -> None:
        """Add a listener; it is called after the earlier ones."""
        self._listeners.append(listener)

    def change(self, change: Change) -> None:
        """Have the change decided and made durable.

        It may end before this returns: when there is nothing to wait for, or nothing can be kept.
        A change without records ends when everything that it rests on is durable.
        """
        raise NotImplementedError

    def _applied(self, records: list[MetadataRecord], change: Change | None, version: int) -> None:
        if change is not None:
            assert not change.is_ended
            change.is_ended = True
        for listener in self._listeners:
            listener.on_applied(version, records, change)

    def _refused(self, change: Change, reason: str) -> None:
        assert not change.is_ended
        change.is_ended = True
        change.refusal = reason
        for listener in self._listeners:
            listener.on_refused(change)
