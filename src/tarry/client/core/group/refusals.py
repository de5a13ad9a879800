"""Refusals that keep a member out of its group for good, with advice for the user."""

from __future__ import annotations

from tarry.base import errors
from tarry.client.core.group.assignment.consumer_protocol import PROTOCOL_TYPE
from tarry.client.settings import ConsumerSettings


def refusal_text(
    settings: ConsumerSettings, code: int, assignor_names: str, others_have: str
) -> str:
    """Return a sentence about a refusal; the caller appends the code."""
    group_id = settings.group_id
    offered = f"{PROTOCOL_TYPE} ({assignor_names})"
    has = f"the group has {others_have}" if others_have else "what the group has is not known"
    return {
        errors.GROUP_AUTHORIZATION_FAILED: (
            f"client {settings.client_id} may not use group {group_id}; its principal needs READ"
        ),
        errors.FENCED_INSTANCE_ID: (
            f"another member of group {group_id} joined as group.instance.id="
            f"{settings.instance_id}; give each member an id of its own"
        ),
        errors.GROUP_MAX_SIZE_REACHED: (
            f"group {group_id} has as many members as group.max.size of its broker allows"
        ),
        errors.INCONSISTENT_GROUP_PROTOCOL: (
            f"no protocol of this member is one of group {group_id}'s: it offers {offered}, {has}; "
            "give all members one partition.assignment.strategy"
        ),
        errors.INVALID_GROUP_ID: f"{group_id!r} is no name for a group",
        errors.INVALID_SESSION_TIMEOUT: (
            f"session.timeout.ms={settings.session_timeout_ms} is outside what the broker allows "
            "(group.min.session.timeout.ms to group.max.session.timeout.ms)"
        ),
    }.get(code, f"group {group_id} refuses this member")
