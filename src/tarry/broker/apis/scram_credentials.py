"""DescribeUserScramCredentials and AlterUserScramCredentials (keys 50 and 51): there are no logins.

No user has credentials.  Giving a user credentials is refused, since they would protect nothing.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.limits import USERS_PER_REQUEST_MAX
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from tarry.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

REFUSAL: Final = "this broker has no logins yet, so credentials would protect nothing"
_TOO_MANY: Final = f"one request names at most {USERS_PER_REQUEST_MAX} users"


def describe(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Message | None:
    """Answer for each named user that it has no credentials; without names the answer is empty."""
    users = request.users or []
    if len(users) > USERS_PER_REQUEST_MAX:
        return DescribeUserScramCredentialsResponse(
            error_code=errors.POLICY_VIOLATION, error_message=_TOO_MANY
        )
    times: dict[str, int] = {}
    for user in users:
        times[user.name] = times.get(user.name, 0) + 1
    return DescribeUserScramCredentialsResponse(
        results=[_described(name, count) for name, count in times.items()]
    )


def _described(name: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=errors.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {name}",
        )
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=errors.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {name}",
    )


def alter(context: RequestContext, request: AlterUserScramCredentialsRequest) -> Message | None:
    """Refuse to set credentials, and find none to delete."""
    results: dict[str, AlterUserScramCredentialsResult] = {}
    for deletion in request.deletions[:USERS_PER_REQUEST_MAX]:
        results[deletion.name] = AlterUserScramCredentialsResult(
            user=deletion.name,
            error_code=errors.RESOURCE_NOT_FOUND,
            error_message="Attempt to delete a user credential that does not exist",
        )
    for upsertion in request.upsertions[:USERS_PER_REQUEST_MAX]:
        results[upsertion.name] = AlterUserScramCredentialsResult(
            user=upsertion.name,
            error_code=errors.UNSUPPORTED_SASL_MECHANISM,
            error_message=REFUSAL,
        )
    return AlterUserScramCredentialsResponse(results=list(results.values()))
