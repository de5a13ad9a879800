"""The contract of metadata stores: a change goes in, and its end comes out as an event.

The embedded store keeps the metadata in a log of this broker.  The store in etcd, which several
brokers share, keeps the same contract.
"""

from __future__ import annotations

from typing import Protocol

from tarry.base.limits import PARTITIONS_PER_CHANGE_MAX, TOPICS_PER_CHANGE_MAX
from tarry.cluster.state.levels import THIS_RELEASE, Release
from tarry.cluster.state.records import MetadataRecord
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change


class StoreListener(Protocol):
    """Listener to a store, which learns how changes end and what other brokers have changed."""

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Receive records that are durable and in the store's state, which has at least this
        version.

        `change` is None if another broker has made the change.
        """

    def on_refused(self, change: Change) -> None:
        """Receive a change of which nothing is kept; its `refusal` says why."""


class MetadataStore:
    """The base of all stores.

    `state` holds what is durable, and clients are answered from it.  The next change is decided on
    `view`, which may be ahead of `state`.  `version` is the version of `state` and only grows.
    """

    # Name of what keeps the metadata, and the words of the log for a change that was not kept.
    keeper = "the disk"
    refused = "not done, the disk refused it"
    # One change may create, grow, delete or configure at most so many topics.  It may write at most
    # `partitions_max` partitions together as whole topics.
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

        The change may end before this call returns: if it has nothing to wait for, or cannot be
        kept.  A change without records ends when all changes that its decision rests on are
        durable.
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
