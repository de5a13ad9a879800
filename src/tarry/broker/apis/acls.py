"""DescribeAcls, CreateAcls, DeleteAcls (keys 29 to 31): there is no access control.

The answers are those of an Apache Kafka without an authorizer, byte for byte.  MirrorMaker,
librdkafka and the tools take SECURITY_DISABLED for information, but would take a closed connection
for a failure.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from tarry.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from tarry.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_NOT_CONFIGURED: Final = "No Authorizer is configured."


def describe(context: RequestContext, request: DescribeAclsRequest) -> Message | None:
    """Answer that this broker has no ACLs to describe."""
    return DescribeAclsResponse(
        error_code=errors.SECURITY_DISABLED,
        error_message="No Authorizer is configured on the broker",
    )


def create(context: RequestContext, request: CreateAclsRequest) -> Message | None:
    """Refuse each creation; all refusals are one shared result."""
    result = AclCreationResult(error_code=errors.SECURITY_DISABLED, error_message=_NOT_CONFIGURED)
    return CreateAclsResponse(results=[result] * len(request.creations))


def delete(context: RequestContext, request: DeleteAclsRequest) -> Message | None:
    """Refuse each filter; all refusals are one shared result."""
    result = DeleteAclsFilterResult(
        error_code=errors.SECURITY_DISABLED, error_message=_NOT_CONFIGURED
    )
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
