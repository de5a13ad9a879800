"""ConsumerGroupDescribe (key 69): there is no group of KIP-848, so none can be described.

Clients that get UNSUPPORTED_VERSION for a group ask DescribeGroups for it; any other code would
end their question.
"""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(context: RequestContext, request: ConsumerGroupDescribeRequest) -> Message | None:
    """Refuse group by group, in the order of the request, as Kafka without the protocol does."""
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(error_code=errors.UNSUPPORTED_VERSION, group_id=group_id)
            for group_id in request.group_ids
        ]
    )
