"""Reactions of the client to error codes, for each API that repeats by itself.

The marks of a code (base/errors) decide: one that passes is repeated, one that says that metadata
is stale refreshes it first, any other is raised with the broker's sentence.  What an API does
differently stands in its table.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors

# Raise it.
FAIL: Final = 0
# The same again after a pause.
RETRY: Final = 1
# Metadata is stale: refresh it, then the same again.
REFRESH: Final = 2
# Success, although the offset is not known.
ALREADY_THERE: Final = 3
# The batch is too large: in halves.
SPLIT: Final = 4
# The broker lost count of our sequences.
RENUMBER: Final = 5
# The producer is finished.
FATAL: Final = 6
# Single records are at fault: they fail, their neighbours go again.
BLAME: Final = 7
# The offset is not in the log.
RESET: Final = 8

# What differs from the code's own marks (base/errors: retriable, refreshes).
PRODUCE: Final[dict[int, int]] = {
    errors.MESSAGE_TOO_LARGE: SPLIT,
    errors.RECORD_LIST_TOO_LARGE: SPLIT,
    errors.INVALID_TIMESTAMP: BLAME,
    errors.INVALID_RECORD: BLAME,
    errors.OUT_OF_ORDER_SEQUENCE_NUMBER: RENUMBER,
    errors.UNKNOWN_PRODUCER_ID: RENUMBER,
    errors.DUPLICATE_SEQUENCE_NUMBER: ALREADY_THERE,
    errors.INVALID_PRODUCER_EPOCH: FATAL,
    errors.PRODUCER_FENCED: FATAL,
}

FETCH: Final[dict[int, int]] = {
    errors.OFFSET_OUT_OF_RANGE: RESET,
    # Java's consumer takes it for something that passes, and brokers do say it in passing.
    errors.UNKNOWN_SERVER_ERROR: RETRY,
}

# ListOffsets and OffsetForLeaderEpoch.
LOOKUP: Final[dict[int, int]] = {}


def reaction_to(table: dict[int, int], code: int) -> int:
    """Return the reaction in the table, else the one that the marks of the code give; FAIL for
    unknown codes."""
    reaction = table.get(code)
    if reaction is not None:
        return reaction
    known = errors.ERRORS.get(code)
    if known is None or not known.retriable:
        return FAIL
    return REFRESH if known.refreshes else RETRY
