"""DescribeClientQuotas and AlterClientQuotas (keys 48 and 49): there are no quotas yet.

A description is empty, after Kafka's checks of the request.  Setting a quota is refused, since the
client would believe that other clients are limited; removing a quota that does not exist succeeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.base.setting import shown
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from tarry.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

MATCH_EXACT: Final = 0
MATCH_DEFAULT: Final = 1
MATCH_SPECIFIED: Final = 2

REFUSAL: Final = "this broker has no quotas yet; nothing was changed"


def describe(context: RequestContext, request: DescribeClientQuotasRequest) -> Message | None:
    """Return no quotas, or the fault of the request."""
    error_code, sentence = _fault(request.components)
    if error_code == errors.NONE:
        return DescribeClientQuotasResponse()
    return DescribeClientQuotasResponse(error_code=error_code, error_message=sentence, entries=None)


def _fault(components: list[ComponentData]) -> tuple[int, str]:
    seen: dict[str, None] = {}
    for one in components:
        if not one.entity_type:
            return errors.INVALID_REQUEST, "Invalid empty entity type."
        if one.entity_type in seen:
            return errors.INVALID_REQUEST, (
                f"Entity type {shown(one.entity_type)} cannot appear more than once in the filter."
            )
        seen[one.entity_type] = None
        if one.match_type not in (MATCH_EXACT, MATCH_DEFAULT, MATCH_SPECIFIED):
            return errors.INVALID_REQUEST, f"Unknown match type {one.match_type}"
        if (one.match_type == MATCH_EXACT) != (one.match is not None):
            return errors.INVALID_REQUEST, (
                "An exact match needs a match string, and no other kind of match has one."
            )
        if one.entity_type not in (USER, CLIENT_ID, IP):
            return errors.UNSUPPORTED_VERSION, f"Unsupported entity type {shown(one.entity_type)}"
    if IP in seen and (USER in seen or CLIENT_ID in seen):
        return errors.INVALID_REQUEST, (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return errors.NONE, ""


def alter(
    long_answers: LongAnswers, context: RequestContext, request: AlterClientQuotasRequest
) -> Message | None:
    """Refuse each entry that sets a quota."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _refusals(answer, request))


def _refusals(answer: LongAnswer, request: AlterClientQuotasRequest) -> Iterator[int]:
    answer.open(AlterClientQuotasResponse())
    for entry in request.entries:
        result = EntryData(error_message=None)
        if any(not one.remove for one in entry.ops):
            result.error_code = errors.INVALID_REQUEST
            result.error_message = REFUSAL
        answer.open(result)
        yield 1 + len(entry.ops) // ELEMENTS_PER_UNIT
        for one in entry.entity:
            answer.add(EntityData(one.entity_type, one.entity_name))
            yield 1
        answer.close()
