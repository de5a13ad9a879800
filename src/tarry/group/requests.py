"""Requests to a group and its answers: what all of them have.

They are plain objects, no messages of the wire.  A ticket is the broker's number for a request
that waits for its answer; the core keeps it and gives it back in exactly one answer.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tarry.base import errors
from tarry.base.limits import GROUP_METADATA_BYTES_MAX

# Why a join, an assignment or the text of an offset is refused.
TOO_MUCH_METADATA: Final = (
    f"members, assignments and offsets of a group have at most {GROUP_METADATA_BYTES_MAX} bytes "
    "of metadata together"
)


class GroupSettings(msgspec.Struct, frozen=True):
    """The settings that decisions depend on, by Kafka's keys."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000


class Request(msgspec.Struct, frozen=True):
    """Request of a member, with what all of them have."""

    ticket: int
    member_id: str
    instance_id: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """The one answer to the request with this ticket."""

    ticket: int
    error_code: int = errors.NONE
    # Why it is an error, where the broker's log has to say it.
    reason: str = ""

    def failed(self, error_code: int) -> Answer:
        """Return the answer to a request for which the broker could not do what was decided."""
        return replace(self, error_code=error_code)

    def sent_away(self) -> Answer:
        """Return what is answered instead while another broker may coordinate already."""
        return self
