"""DescribeCluster (key 60): the brokers, who controls them, the cluster's id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.cluster_answers import CLUSTER_OPERATIONS, address_for
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# KIP-919: whom the client means to ask.
ENDPOINT_BROKER: Final = 1
ENDPOINT_CONTROLLER: Final = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> Message | None:
    """This broker is the whole cluster, and controls it."""
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
    host, port = address_for(broker, context)
    # Fenced brokers, which version 2 may ask for, there are none.
    response = DescribeClusterResponse(
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.broker_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=host, port=port, rack=broker.settings.broker_rack
            )
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
