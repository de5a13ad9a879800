"""DescribeQuorum (key 55): there is no KRaft quorum; the answer says what keeps the metadata."""

from __future__ import annotations

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


def handle(
    settings: Settings, context: RequestContext, request: DescribeQuorumRequest
) -> Message | None:
    """Refuse with a sentence, which clients of version 2 show."""
    keeper = (
        "this broker keeps its metadata itself"
        if settings.store_address is None
        else "the brokers of this cluster keep their metadata in etcd"
    )
    sentence = f'there is no KRaft quorum: {keeper}; "tarry cluster status" shows the brokers'
    return DescribeQuorumResponse(error_code=errors.UNSUPPORTED_VERSION, error_message=sentence)
