"""Reactions of a group member to error codes.

For codes outside the table, the properties of the code (base/errors) decide: a retriable error is
retried, another one is raised with the API and the code.  The effect of a reaction depends on the
member's state; see `membership` and `committer`.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors

# Raise the error from the next poll, then continue.
FAIL: Final = 0
# Repeat the request at the same coordinator, after a pause.
RETRY: Final = 1
# Look the coordinator up again: it moved or is about to move.
FIND: Final = 2
# Drop the generation: its partitions are lost, the member id stays.
DROP_GENERATION: Final = 3
# Drop the member: the coordinator does not know it; partitions, generation and id are lost.
DROP_MEMBER: Final = 4
# Join again, and keep partitions, generation and id.
REJOIN: Final = 5
# Join again at once with the member id of the answer.
TAKE_ID: Final = 6
# Fail the member for good: every poll raises the error.
FATAL: Final = 7

GROUP: Final[dict[int, int]] = {
    errors.COORDINATOR_LOAD_IN_PROGRESS: RETRY,
    errors.COORDINATOR_NOT_AVAILABLE: FIND,
    errors.NOT_COORDINATOR: FIND,
    errors.ILLEGAL_GENERATION: DROP_GENERATION,
    errors.UNKNOWN_MEMBER_ID: DROP_MEMBER,
    errors.REBALANCE_IN_PROGRESS: REJOIN,
    errors.MEMBER_ID_REQUIRED: TAKE_ID,
    errors.FENCED_INSTANCE_ID: FATAL,
    errors.GROUP_AUTHORIZATION_FAILED: FATAL,
    errors.GROUP_MAX_SIZE_REACHED: FATAL,
    errors.INCONSISTENT_GROUP_PROTOCOL: FATAL,
    errors.INVALID_GROUP_ID: FATAL,
    errors.INVALID_SESSION_TIMEOUT: FATAL,
}


def reaction_to(code: int) -> int:
    """Return the reaction from the table, else RETRY for retriable codes and FAIL for others."""
    reaction = GROUP.get(code)
    if reaction is not None:
        return reaction
    known = errors.ERRORS.get(code)
    return RETRY if known is not None and known.retriable else FAIL
