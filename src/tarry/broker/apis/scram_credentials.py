"""DescribeUserScramCredentials and AlterUserScramCredentials (keys 50 and 51): there are no logins.

No user has credentials.  Giving a user credentials is refused, since they would protect nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tarry.base import errors
from tarry.base.limits import USERS_PER_REQUEST_MAX
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_STEP, ELEMENTS_PER_UNIT
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
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


def alter(
    long_answers: LongAnswers, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> Message | None:
    """Refuse to set credentials, and find none to delete."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _results(answer, request))


def _results(answer: LongAnswer, request: AlterUserScramCredentialsRequest) -> Iterator[int]:
    """Answer once for each user; whoever is also given credentials is refused them."""
    is_given: dict[str, bool] = {}
    yield from _note(is_given, request.deletions, value=False)
    yield from _note(is_given, request.upsertions, value=True)
    answer.open(AlterUserScramCredentialsResponse())
    for name, is_refused in is_given.items():
        answer.add(_refused(name) if is_refused else _not_found(name))
        yield 1


def _note(
    is_given: dict[str, bool],
    alterations: Sequence[ScramCredentialDeletion | ScramCredentialUpsertion],
    *,
    value: bool,
) -> Iterator[int]:
    for start in range(0, len(alterations), ELEMENTS_PER_STEP):
        share = alterations[start : start + ELEMENTS_PER_STEP]
        for each in share:
            is_given[each.name] = value
        yield 1 + len(share) // ELEMENTS_PER_UNIT


def _not_found(name: str) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=name,
        error_code=errors.RESOURCE_NOT_FOUND,
        error_message="Attempt to delete a user credential that does not exist",
    )


def _refused(name: str) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=name, error_code=errors.UNSUPPORTED_SASL_MECHANISM, error_message=REFUSAL
    )
