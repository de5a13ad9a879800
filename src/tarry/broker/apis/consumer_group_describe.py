"""ConsumerGroupDescribe (key 69): there are no groups of KIP-848, so none can be described.

Clients that get UNSUPPORTED_VERSION for a group ask DescribeGroups for it.  After any other code
they would ask no further.
"""

from __future__ import annotations

from collections.abc import Iterator

from tarry.base import errors
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(
    long_answers: LongAnswers, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Message | None:
    """Refuse each group, in the order of the request, as a Kafka without the protocol does."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, request))


def _steps(answer: LongAnswer, request: ConsumerGroupDescribeRequest) -> Iterator[int]:
    answer.open(ConsumerGroupDescribeResponse())
    for group_id in once(request.group_ids):
        answer.add(DescribedGroup(error_code=errors.UNSUPPORTED_VERSION, group_id=group_id))
        yield 1
