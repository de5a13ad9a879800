"""Requests for what Tarry does not have: access control, quotas, logins, transactions, a quorum."""

from __future__ import annotations

from typing import Final

from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlteredEntityData,
    AlteredEntryData,
    OpData,
)
from tarry.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tarry.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tarry.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tarry.protocol.messages.describe_acls import DescribeAclsRequest
from tarry.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from tarry.protocol.messages.describe_quorum import (
    AskedPartitionData,
    AskedTopicData,
    DescribeQuorumRequest,
)
from tarry.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tarry.protocol.messages.list_transactions import ListTransactionsRequest
from tarry.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ANY: Final = 1
TOPIC: Final = 2
LITERAL: Final = 3
READ: Final = 3
ALLOW: Final = 3
SCRAM_SHA_256: Final = 1


def acl_of(principal: str) -> AclCreation:
    return AclCreation(TOPIC, "orders", LITERAL, principal, "*", READ, ALLOW)


def all_acls(pattern_type: int = ANY) -> DeleteAclsFilter:
    return DeleteAclsFilter(ANY, None, pattern_type, None, None, ANY, ANY)


def quota(value: float, *, remove: bool) -> AlteredEntryData:
    entity = [AlteredEntityData("user", "anna")]
    return AlteredEntryData(entity, [OpData("producer_byte_rate", value, remove)])


def credential(name: str) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, SCRAM_SHA_256, 4096, b"salt", b"salted")


def absent_request(key: int, version: int) -> Message | None:
    """A request with something to answer; None if the API is not of these."""
    # Version 1 of the ACL APIs is the first that has kinds of patterns; each knows LITERAL.
    requests: dict[int, Message] = {
        api_keys.DESCRIBE_ACLS: DescribeAclsRequest(ANY, None, LITERAL, None, None, ANY, ANY),
        api_keys.CREATE_ACLS: CreateAclsRequest([acl_of("User:anna"), acl_of("User:bert")]),
        api_keys.DELETE_ACLS: DeleteAclsRequest([all_acls(LITERAL)]),
        api_keys.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasRequest(
            [ComponentData("user", 0, "anna")], strict=True
        ),
        api_keys.ALTER_CLIENT_QUOTAS: AlterClientQuotasRequest([quota(5.0, remove=False)]),
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeUserScramCredentialsRequest(
            [UserName("anna")]
        ),
        api_keys.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsRequest(
            [ScramCredentialDeletion("anna", SCRAM_SHA_256)], [credential("anna")]
        ),
        api_keys.LIST_TRANSACTIONS: ListTransactionsRequest(["Ongoing", "nope"], [7]),
        api_keys.DESCRIBE_QUORUM: DescribeQuorumRequest(
            [AskedTopicData("__cluster_metadata", [AskedPartitionData(0)])]
        ),
        api_keys.SHARE_GROUP_HEARTBEAT: ShareGroupHeartbeatRequest(
            "g", "member", 0, None, ["orders"]
        ),
    }
    return requests.get(key)
