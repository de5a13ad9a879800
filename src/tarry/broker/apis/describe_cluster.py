"""DescribeCluster (key 60): the brokers, the controller, and the cluster's id."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.metadata.cluster_view import CLUSTER_OPERATIONS, BrokerEndpoint, ClusterView
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

# KIP-919: kinds of server that the client may expect at this address.
ENDPOINT_BROKER: Final = 1
ENDPOINT_CONTROLLER: Final = 2


def handle(
    view: ClusterView, context: RequestContext, request: DescribeClusterRequest
) -> Message | None:
    """Describe the cluster."""
    if request.endpoint_type == ENDPOINT_CONTROLLER:
        return DescribeClusterResponse(
            error_code=errors.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker's address, and a controller's was meant",
        )
    if request.endpoint_type != ENDPOINT_BROKER:
        return DescribeClusterResponse(
            error_code=errors.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"there is no endpoint type {request.endpoint_type}",
        )
    listener = context.connection.listener
    response = DescribeClusterResponse(
        cluster_id=view.state.cluster_id,
        controller_id=view.controller_id,
        brokers=[_broker(each, is_fenced=False) for each in view.brokers(listener)],
    )
    if request.include_fenced_brokers:
        response.brokers += [
            _broker(each, is_fenced=True) for each in view.fenced_brokers(listener)
        ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _broker(endpoint: BrokerEndpoint, *, is_fenced: bool) -> DescribeClusterBroker:
    return DescribeClusterBroker(
        broker_id=endpoint.broker_id,
        host=endpoint.host,
        port=endpoint.port,
        rack=endpoint.rack,
        is_fenced=is_fenced,
    )
