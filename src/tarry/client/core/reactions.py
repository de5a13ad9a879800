"""What the client does about an error code: one table for each API that repeats by itself.

A code that stands in no table is not repeated: it is raised with the API, the broker's sentence
and the code's name.  See design/client.md, "Reaction to error codes".
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
# Hold the partition and raise: repeating cannot help, and must not spin.
HOLD: Final = 9

PRODUCE: Final[dict[int, int]] = {
    errors.CORRUPT_MESSAGE: RETRY,
    errors.UNKNOWN_TOPIC_OR_PARTITION: REFRESH,
    errors.LEADER_NOT_AVAILABLE: REFRESH,
    errors.NOT_LEADER_OR_FOLLOWER: REFRESH,
    errors.REQUEST_TIMED_OUT: RETRY,
    errors.REPLICA_NOT_AVAILABLE: REFRESH,
    errors.MESSAGE_TOO_LARGE: SPLIT,
    errors.NETWORK_EXCEPTION: REFRESH,
    errors.COORDINATOR_LOAD_IN_PROGRESS: RETRY,
    errors.RECORD_LIST_TOO_LARGE: SPLIT,
    errors.NOT_ENOUGH_REPLICAS: RETRY,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RETRY,
    errors.INVALID_TIMESTAMP: BLAME,
    errors.OUT_OF_ORDER_SEQUENCE_NUMBER: RENUMBER,
    errors.DUPLICATE_SEQUENCE_NUMBER: ALREADY_THERE,
    errors.INVALID_PRODUCER_EPOCH: FATAL,
    errors.KAFKA_STORAGE_ERROR: REFRESH,
    errors.UNKNOWN_PRODUCER_ID: RENUMBER,
    errors.FENCED_LEADER_EPOCH: REFRESH,
    errors.UNKNOWN_LEADER_EPOCH: RETRY,
    errors.INVALID_RECORD: BLAME,
    errors.THROTTLING_QUOTA_EXCEEDED: RETRY,
    errors.PRODUCER_FENCED: FATAL,
    errors.UNKNOWN_TOPIC_ID: REFRESH,
    errors.INCONSISTENT_TOPIC_ID: REFRESH,
}

FETCH: Final[dict[int, int]] = {
    errors.OFFSET_OUT_OF_RANGE: RESET,
    errors.CORRUPT_MESSAGE: RETRY,
    errors.UNKNOWN_TOPIC_OR_PARTITION: REFRESH,
    errors.LEADER_NOT_AVAILABLE: REFRESH,
    errors.NOT_LEADER_OR_FOLLOWER: REFRESH,
    errors.REQUEST_TIMED_OUT: RETRY,
    errors.REPLICA_NOT_AVAILABLE: REFRESH,
    errors.NETWORK_EXCEPTION: REFRESH,
    errors.KAFKA_STORAGE_ERROR: REFRESH,
    errors.UNKNOWN_SERVER_ERROR: RETRY,
    errors.FENCED_LEADER_EPOCH: REFRESH,
    errors.UNKNOWN_LEADER_EPOCH: RETRY,
    errors.OFFSET_NOT_AVAILABLE: RETRY,
    errors.THROTTLING_QUOTA_EXCEEDED: RETRY,
    errors.UNKNOWN_TOPIC_ID: REFRESH,
    errors.INCONSISTENT_TOPIC_ID: REFRESH,
    errors.UNSUPPORTED_COMPRESSION_TYPE: HOLD,
    errors.TOPIC_AUTHORIZATION_FAILED: HOLD,
}

# ListOffsets and OffsetForLeaderEpoch ask the leader, and meet what a fetch meets.
LOOKUP: Final[dict[int, int]] = {
    code: reaction for code, reaction in FETCH.items() if reaction in (RETRY, REFRESH)
}


def reaction_to(table: dict[int, int], code: int) -> int:
    return table.get(code, FAIL)
