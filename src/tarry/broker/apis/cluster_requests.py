"""Handlers of requests about replicas, which import the rules for them at the first request.

A broker that is alone starts without the rules of a cluster's rows, which it hardly ever needs.
"""

from __future__ import annotations

from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from tarry.protocol.messages.elect_leaders import ElectLeadersRequest
from tarry.protocol.messages.unregister_broker import UnregisterBrokerRequest


def elect(
    changes: MetadataChanges, context: RequestContext, request: ElectLeadersRequest
) -> Message | None:
    """Handle ElectLeaders."""
    from tarry.broker.apis import elect_leaders

    return elect_leaders.handle(changes, context, request)


def reassign(
    changes: MetadataChanges, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Message | None:
    """Handle AlterPartitionReassignments."""
    from tarry.broker.apis import alter_partition_reassignments

    return alter_partition_reassignments.handle(changes, context, request)


def unregister(
    changes: MetadataChanges, context: RequestContext, request: UnregisterBrokerRequest
) -> Message | None:
    """Handle UnregisterBroker."""
    from tarry.broker.apis import unregister_broker

    return unregister_broker.handle(changes, context, request)
