"""Requests to a group and its answers: the fields that all of them have.

They are plain objects, no messages of the wire.  A ticket is the broker's number for a request
that waits for its answer.  The core keeps the ticket and returns it in exactly one answer.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tarry.base import errors
from tarry.base.limits import GROUP_METADATA_BYTES_MAX

# Reason for the refusal of a join, an assignment or the text of an offset.
TOO_MUCH_METADATA: Final = (
    f"members, assignments and offsets of a group have at most {GROUP_METADATA_BYTES_MAX} bytes "
    "of metadata together"
)


class GroupSettings(msgspec.Struct, frozen=True):
    """Settings that decisions depend on, by Kafka's keys."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000


class Request(msgspec.Struct, frozen=True):
    """Request of a member, with the fields that all have."""

    ticket: int
    member_id: str
    instance_id: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """Answer to the request with this ticket, which gets exactly one."""

    ticket: int
    error_code: int = errors.NONE
    # Reason of the error, if the broker's log needs it.
    reason: str = ""

    def failed(self, error_code: int) -> Answer:
        """Return the answer with this error, for a decision that could not be carried out."""
        return replace(self, error_code=error_code)

    def sent_away(self) -> Answer:
        """Return the answer to send instead while another broker may coordinate already."""
        return self
