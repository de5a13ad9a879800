"""Reactions of the client to error codes, for each API that is retried by itself.

The marks of a code (base/errors) decide.  After an error that passes, the request is repeated.
After one that says that metadata is stale, metadata is refreshed first.  Any other error is raised
with the broker's sentence.  The table of an API has its exceptions.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors

# Raise the error.
FAIL: Final = 0
# Repeat the request after a pause.
RETRY: Final = 1
# Refresh the stale metadata, then repeat the request.
REFRESH: Final = 2
# Count as a success, although the offset is not known.
ALREADY_THERE: Final = 3
# Send the batch in halves, because it is too large.
SPLIT: Final = 4
# Number the batches again, because the broker has lost the producer's sequences.
RENUMBER: Final = 5
# Stop the producer for good.
FATAL: Final = 6
# Fail the records at fault, and send the others again.
BLAME: Final = 7
# Reset the position, because the offset is not in the log.
RESET: Final = 8

# Reactions to Produce that differ from the code's marks (base/errors: retriable, refreshes).
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
    # The error passes, as brokers return it at times; Java's consumer also retries.
    errors.UNKNOWN_SERVER_ERROR: RETRY,
}

# Reactions to ListOffsets and OffsetForLeaderEpoch that differ from the code's marks.
LOOKUP: Final[dict[int, int]] = {}


def reaction_to(table: dict[int, int], code: int) -> int:
    """Return the reaction in the table, or else the one that the code's marks give; FAIL for
    unknown codes."""
    reaction = table.get(code)
    if reaction is not None:
        return reaction
    known = errors.ERRORS.get(code)
    if known is None or not known.retriable:
        return FAIL
    return REFRESH if known.refreshes else RETRY
