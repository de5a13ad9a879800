"""Routes of Tarry's own APIs for scheduled records, and the part in which their answers wait.

ApiVersions leaves them out, so that Kafka's clients are told only of APIs that they know.  A client
of Tarry's sees by the topic's setting `delay.enable` that the broker has them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tarry.broker.access import OPEN
from tarry.broker.apis import change_scheduled_records, list_scheduled_records
from tarry.broker.broker import Broker
from tarry.broker.delayed.schedule_changes import ScheduleChanges
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.messages.change_scheduled_records import (
    decode_change_scheduled_records_request,
)
from tarry.protocol.messages.list_scheduled_records import decode_list_scheduled_records_request


def serve_schedules(broker: Broker) -> list[Route[Any]]:
    """Return the routes by which scheduled records are listed and changed."""
    waiting = broker.parts.add(ScheduleChanges(broker.timer))
    terms = broker.long_answers, broker.topics, broker.scheduling
    return [
        Route(
            api_keys.LIST_SCHEDULED_RECORDS,
            0,
            0,
            OPEN,
            decode_list_scheduled_records_request,
            partial(list_scheduled_records.handle, *terms),
            is_advertised=False,
        ),
        Route(
            api_keys.CHANGE_SCHEDULED_RECORDS,
            0,
            0,
            OPEN,
            decode_change_scheduled_records_request,
            partial(change_scheduled_records.handle, *terms, waiting),
            is_advertised=False,
        ),
    ]
