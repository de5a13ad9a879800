"""Reactions of a group member to error codes.

The marks of a code (base/errors) decide where the table is silent: one that passes is repeated,
any other is raised with the API and the code.  How far a reaction goes depends on where the member
stands; that is in `membership` and `committer`.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors

# Raise it from the next poll, then go on.
FAIL: Final = 0
# The same request to the same coordinator, after a pause.
RETRY: Final = 1
# Another broker is the coordinator, or will be: ask who.
FIND: Final = 2
# The generation is over: whoever held it has lost its partitions, and keeps its id.
DROP_GENERATION: Final = 3
# The coordinator does not know the member: partitions, generation and id are lost.
DROP_MEMBER: Final = 4
# Join again, keeping everything.
REJOIN: Final = 5
# Join at once with the id that the answer gives.
TAKE_ID: Final = 6
# The member is finished; every poll says so.
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
    """Return the reaction in the table, else the one that the marks of the code give; FAIL for
    unknown codes."""
    reaction = GROUP.get(code)
    if reaction is not None:
        return reaction
    known = errors.ERRORS.get(code)
    return RETRY if known is not None and known.retriable else FAIL
