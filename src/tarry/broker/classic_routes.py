"""Routes of the requests of members of classic groups."""

from __future__ import annotations

from functools import partial
from typing import Any

from tarry.base.doors import Random
from tarry.broker.access import OPEN
from tarry.broker.apis import heartbeat, join_group, leave_group, sync_group
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.delayed.long_answers import LongAnswers
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.messages.heartbeat import decode_heartbeat_request
from tarry.protocol.messages.join_group import decode_join_group_request
from tarry.protocol.messages.leave_group import decode_leave_group_request
from tarry.protocol.messages.sync_group import decode_sync_group_request


# fmt: off
def classic_routes(
    long_answers: LongAnswers, groups: GroupCoordinator, random: Random
) -> list[Route[Any]]:
    """Return the routes; each handler has its further arguments bound."""
    return [
        Route(api_keys.JOIN_GROUP, 0, 9, OPEN, decode_join_group_request,
              partial(join_group.handle, groups, random)),
        Route(api_keys.SYNC_GROUP, 0, 5, OPEN, decode_sync_group_request,
              partial(sync_group.handle, groups)),
        Route(api_keys.HEARTBEAT, 0, 4, OPEN, decode_heartbeat_request,
              partial(heartbeat.handle, groups)),
        Route(api_keys.LEAVE_GROUP, 0, 5, OPEN, decode_leave_group_request,
              partial(leave_group.handle, long_answers, groups)),
    ]
# fmt: on
