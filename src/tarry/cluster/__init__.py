"""Metadata of the cluster: decided as records, durable, applied to one state."""

from __future__ import annotations

from tarry.cluster.embedded import EmbeddedStore, open_store
from tarry.cluster.state import ClusterState, ClusterView, DeletedTopic, PartitionState, TopicState
from tarry.cluster.store import MetadataStore

__all__ = [
    "ClusterState",
    "ClusterView",
    "DeletedTopic",
    "EmbeddedStore",
    "MetadataStore",
    "PartitionState",
    "TopicState",
    "open_store",
]
