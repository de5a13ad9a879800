"""Kafka's error codes as plain ints, each with its name and what a client may do.

Codes are `Final` ints and not an enum: comparing an enum member costs four times as much on the
hot path.  `ERRORS` has the name and the marks of each code, for logs, the client and tests.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
CORRUPT_MESSAGE: Final = 2
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
INVALID_FETCH_SIZE: Final = 4
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
BROKER_NOT_AVAILABLE: Final = 8
REPLICA_NOT_AVAILABLE: Final = 9
MESSAGE_TOO_LARGE: Final = 10
STALE_CONTROLLER_EPOCH: Final = 11
OFFSET_METADATA_TOO_LARGE: Final = 12
NETWORK_EXCEPTION: Final = 13
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
INVALID_TOPIC_EXCEPTION: Final = 17
RECORD_LIST_TOO_LARGE: Final = 18
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
INVALID_REQUIRED_ACKS: Final = 21
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_GROUP_ID: Final = 24
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
INVALID_COMMIT_OFFSET_SIZE: Final = 28
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_TIMESTAMP: Final = 32
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT: Final = 43
POLICY_VIOLATION: Final = 44
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
DUPLICATE_SEQUENCE_NUMBER: Final = 46
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
INVALID_TRANSACTION_TIMEOUT: Final = 50
CONCURRENT_TRANSACTIONS: Final = 51
TRANSACTION_COORDINATOR_FENCED: Final = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
SECURITY_DISABLED: Final = 54
OPERATION_NOT_ATTEMPTED: Final = 55
KAFKA_STORAGE_ERROR: Final = 56
LOG_DIR_NOT_FOUND: Final = 57
SASL_AUTHENTICATION_FAILED: Final = 58
UNKNOWN_PRODUCER_ID: Final = 59
REASSIGNMENT_IN_PROGRESS: Final = 60
DELEGATION_TOKEN_AUTH_DISABLED: Final = 61
DELEGATION_TOKEN_NOT_FOUND: Final = 62
DELEGATION_TOKEN_OWNER_MISMATCH: Final = 63
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = 64
DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = 65
DELEGATION_TOKEN_EXPIRED: Final = 66
INVALID_PRINCIPAL_TYPE: Final = 67
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
FETCH_SESSION_ID_NOT_FOUND: Final = 70
INVALID_FETCH_SESSION_EPOCH: Final = 71
LISTENER_NOT_FOUND: Final = 72
TOPIC_DELETION_DISABLED: Final = 73
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
UNSUPPORTED_COMPRESSION_TYPE: Final = 76
STALE_BROKER_EPOCH: Final = 77
OFFSET_NOT_AVAILABLE: Final = 78
MEMBER_ID_REQUIRED: Final = 79
PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
INVALID_RECORD: Final = 87
UNSTABLE_OFFSET_COMMIT: Final = 88
THROTTLING_QUOTA_EXCEEDED: Final = 89
PRODUCER_FENCED: Final = 90
RESOURCE_NOT_FOUND: Final = 91
DUPLICATE_RESOURCE: Final = 92
UNACCEPTABLE_CREDENTIAL: Final = 93
INCONSISTENT_VOTER_SET: Final = 94
INVALID_UPDATE_VERSION: Final = 95
FEATURE_UPDATE_FAILED: Final = 96
PRINCIPAL_DESERIALIZATION_FAILURE: Final = 97
SNAPSHOT_NOT_FOUND: Final = 98
POSITION_OUT_OF_RANGE: Final = 99
UNKNOWN_TOPIC_ID: Final = 100
DUPLICATE_BROKER_REGISTRATION: Final = 101
BROKER_ID_NOT_REGISTERED: Final = 102
INCONSISTENT_TOPIC_ID: Final = 103
INCONSISTENT_CLUSTER_ID: Final = 104
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
FETCH_SESSION_TOPIC_ID_ERROR: Final = 106
INELIGIBLE_REPLICA: Final = 107
NEW_LEADER_ELECTED: Final = 108
OFFSET_MOVED_TO_TIERED_STORAGE: Final = 109
FENCED_MEMBER_EPOCH: Final = 110
UNRELEASED_INSTANCE_ID: Final = 111
UNSUPPORTED_ASSIGNOR: Final = 112
STALE_MEMBER_EPOCH: Final = 113
MISMATCHED_ENDPOINT_TYPE: Final = 114
UNSUPPORTED_ENDPOINT_TYPE: Final = 115
UNKNOWN_CONTROLLER_ID: Final = 116
UNKNOWN_SUBSCRIPTION_ID: Final = 117
TELEMETRY_TOO_LARGE: Final = 118
INVALID_REGISTRATION: Final = 119
TRANSACTION_ABORTABLE: Final = 120
INVALID_RECORD_STATE: Final = 121
SHARE_SESSION_NOT_FOUND: Final = 122
INVALID_SHARE_SESSION_EPOCH: Final = 123
FENCED_STATE_EPOCH: Final = 124
INVALID_VOTER_KEY: Final = 125
DUPLICATE_VOTER: Final = 126
VOTER_NOT_FOUND: Final = 127
INVALID_REGULAR_EXPRESSION: Final = 128
REBOOTSTRAP_REQUIRED: Final = 129
STREAMS_INVALID_TOPOLOGY: Final = 130
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = 131
STREAMS_TOPOLOGY_FENCED: Final = 132
SHARE_SESSION_LIMIT_REACHED: Final = 133


class ErrorCode(NamedTuple):
    """Facts about a code: `refreshes` says that the client's metadata is stale."""

    code: int
    name: str
    retriable: bool
    refreshes: bool


ERRORS: Final[dict[int, ErrorCode]] = {
    row.code: row
    for row in (
        ErrorCode(UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR", False, False),
        ErrorCode(NONE, "NONE", False, False),
        ErrorCode(OFFSET_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", False, False),
        ErrorCode(CORRUPT_MESSAGE, "CORRUPT_MESSAGE", True, False),
        ErrorCode(UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION", True, True),
        ErrorCode(INVALID_FETCH_SIZE, "INVALID_FETCH_SIZE", False, False),
        ErrorCode(LEADER_NOT_AVAILABLE, "LEADER_NOT_AVAILABLE", True, True),
        ErrorCode(NOT_LEADER_OR_FOLLOWER, "NOT_LEADER_OR_FOLLOWER", True, True),
        ErrorCode(REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT", True, False),
        ErrorCode(BROKER_NOT_AVAILABLE, "BROKER_NOT_AVAILABLE", False, False),
        ErrorCode(REPLICA_NOT_AVAILABLE, "REPLICA_NOT_AVAILABLE", True, True),
        ErrorCode(MESSAGE_TOO_LARGE, "MESSAGE_TOO_LARGE", False, False),
        ErrorCode(STALE_CONTROLLER_EPOCH, "STALE_CONTROLLER_EPOCH", False, False),
        ErrorCode(OFFSET_METADATA_TOO_LARGE, "OFFSET_METADATA_TOO_LARGE", False, False),
        ErrorCode(NETWORK_EXCEPTION, "NETWORK_EXCEPTION", True, True),
        ErrorCode(COORDINATOR_LOAD_IN_PROGRESS, "COORDINATOR_LOAD_IN_PROGRESS", True, False),
        ErrorCode(COORDINATOR_NOT_AVAILABLE, "COORDINATOR_NOT_AVAILABLE", True, False),
        ErrorCode(NOT_COORDINATOR, "NOT_COORDINATOR", True, False),
        ErrorCode(INVALID_TOPIC_EXCEPTION, "INVALID_TOPIC_EXCEPTION", False, False),
        ErrorCode(RECORD_LIST_TOO_LARGE, "RECORD_LIST_TOO_LARGE", False, False),
        ErrorCode(NOT_ENOUGH_REPLICAS, "NOT_ENOUGH_REPLICAS", True, False),
        ErrorCode(
            NOT_ENOUGH_REPLICAS_AFTER_APPEND, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, False
        ),
        ErrorCode(INVALID_REQUIRED_ACKS, "INVALID_REQUIRED_ACKS", False, False),
        ErrorCode(ILLEGAL_GENERATION, "ILLEGAL_GENERATION", False, False),
        ErrorCode(INCONSISTENT_GROUP_PROTOCOL, "INCONSISTENT_GROUP_PROTOCOL", False, False),
        ErrorCode(INVALID_GROUP_ID, "INVALID_GROUP_ID", False, False),
        ErrorCode(UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID", False, False),
        ErrorCode(INVALID_SESSION_TIMEOUT, "INVALID_SESSION_TIMEOUT", False, False),
        ErrorCode(REBALANCE_IN_PROGRESS, "REBALANCE_IN_PROGRESS", False, False),
        ErrorCode(INVALID_COMMIT_OFFSET_SIZE, "INVALID_COMMIT_OFFSET_SIZE", False, False),
        ErrorCode(TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED", False, False),
        ErrorCode(GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED", False, False),
        ErrorCode(CLUSTER_AUTHORIZATION_FAILED, "CLUSTER_AUTHORIZATION_FAILED", False, False),
        ErrorCode(INVALID_TIMESTAMP, "INVALID_TIMESTAMP", False, False),
        ErrorCode(UNSUPPORTED_SASL_MECHANISM, "UNSUPPORTED_SASL_MECHANISM", False, False),
        ErrorCode(ILLEGAL_SASL_STATE, "ILLEGAL_SASL_STATE", False, False),
        ErrorCode(UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION", False, False),
        ErrorCode(TOPIC_ALREADY_EXISTS, "TOPIC_ALREADY_EXISTS", False, False),
        ErrorCode(INVALID_PARTITIONS, "INVALID_PARTITIONS", False, False),
        ErrorCode(INVALID_REPLICATION_FACTOR, "INVALID_REPLICATION_FACTOR", False, False),
        ErrorCode(INVALID_REPLICA_ASSIGNMENT, "INVALID_REPLICA_ASSIGNMENT", False, False),
        ErrorCode(INVALID_CONFIG, "INVALID_CONFIG", False, False),
        ErrorCode(NOT_CONTROLLER, "NOT_CONTROLLER", True, False),
        ErrorCode(INVALID_REQUEST, "INVALID_REQUEST", False, False),
        ErrorCode(UNSUPPORTED_FOR_MESSAGE_FORMAT, "UNSUPPORTED_FOR_MESSAGE_FORMAT", False, False),
        ErrorCode(POLICY_VIOLATION, "POLICY_VIOLATION", False, False),
        ErrorCode(OUT_OF_ORDER_SEQUENCE_NUMBER, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, False),
        ErrorCode(DUPLICATE_SEQUENCE_NUMBER, "DUPLICATE_SEQUENCE_NUMBER", False, False),
        ErrorCode(INVALID_PRODUCER_EPOCH, "INVALID_PRODUCER_EPOCH", False, False),
        ErrorCode(INVALID_TXN_STATE, "INVALID_TXN_STATE", False, False),
        ErrorCode(INVALID_PRODUCER_ID_MAPPING, "INVALID_PRODUCER_ID_MAPPING", False, False),
        ErrorCode(INVALID_TRANSACTION_TIMEOUT, "INVALID_TRANSACTION_TIMEOUT", False, False),
        ErrorCode(CONCURRENT_TRANSACTIONS, "CONCURRENT_TRANSACTIONS", True, False),
        ErrorCode(TRANSACTION_COORDINATOR_FENCED, "TRANSACTION_COORDINATOR_FENCED", False, False),
        ErrorCode(
            TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            False,
            False,
        ),
        ErrorCode(SECURITY_DISABLED, "SECURITY_DISABLED", False, False),
        ErrorCode(OPERATION_NOT_ATTEMPTED, "OPERATION_NOT_ATTEMPTED", False, False),
        ErrorCode(KAFKA_STORAGE_ERROR, "KAFKA_STORAGE_ERROR", True, True),
        ErrorCode(LOG_DIR_NOT_FOUND, "LOG_DIR_NOT_FOUND", False, False),
        ErrorCode(SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED", False, False),
        ErrorCode(UNKNOWN_PRODUCER_ID, "UNKNOWN_PRODUCER_ID", False, False),
        ErrorCode(REASSIGNMENT_IN_PROGRESS, "REASSIGNMENT_IN_PROGRESS", False, False),
        ErrorCode(DELEGATION_TOKEN_AUTH_DISABLED, "DELEGATION_TOKEN_AUTH_DISABLED", False, False),
        ErrorCode(DELEGATION_TOKEN_NOT_FOUND, "DELEGATION_TOKEN_NOT_FOUND", False, False),
        ErrorCode(DELEGATION_TOKEN_OWNER_MISMATCH, "DELEGATION_TOKEN_OWNER_MISMATCH", False, False),
        ErrorCode(
            DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            False,
            False,
        ),
        ErrorCode(
            DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
            False,
            False,
        ),
        ErrorCode(DELEGATION_TOKEN_EXPIRED, "DELEGATION_TOKEN_EXPIRED", False, False),
        ErrorCode(INVALID_PRINCIPAL_TYPE, "INVALID_PRINCIPAL_TYPE", False, False),
        ErrorCode(NON_EMPTY_GROUP, "NON_EMPTY_GROUP", False, False),
        ErrorCode(GROUP_ID_NOT_FOUND, "GROUP_ID_NOT_FOUND", False, False),
        ErrorCode(FETCH_SESSION_ID_NOT_FOUND, "FETCH_SESSION_ID_NOT_FOUND", True, False),
        ErrorCode(INVALID_FETCH_SESSION_EPOCH, "INVALID_FETCH_SESSION_EPOCH", True, False),
        ErrorCode(LISTENER_NOT_FOUND, "LISTENER_NOT_FOUND", True, True),
        ErrorCode(TOPIC_DELETION_DISABLED, "TOPIC_DELETION_DISABLED", False, False),
        ErrorCode(FENCED_LEADER_EPOCH, "FENCED_LEADER_EPOCH", True, True),
        ErrorCode(UNKNOWN_LEADER_EPOCH, "UNKNOWN_LEADER_EPOCH", True, False),
        ErrorCode(UNSUPPORTED_COMPRESSION_TYPE, "UNSUPPORTED_COMPRESSION_TYPE", False, False),
        ErrorCode(STALE_BROKER_EPOCH, "STALE_BROKER_EPOCH", False, False),
        ErrorCode(OFFSET_NOT_AVAILABLE, "OFFSET_NOT_AVAILABLE", True, False),
        ErrorCode(MEMBER_ID_REQUIRED, "MEMBER_ID_REQUIRED", False, False),
        ErrorCode(PREFERRED_LEADER_NOT_AVAILABLE, "PREFERRED_LEADER_NOT_AVAILABLE", True, True),
        ErrorCode(GROUP_MAX_SIZE_REACHED, "GROUP_MAX_SIZE_REACHED", False, False),
        ErrorCode(FENCED_INSTANCE_ID, "FENCED_INSTANCE_ID", False, False),
        ErrorCode(ELIGIBLE_LEADERS_NOT_AVAILABLE, "ELIGIBLE_LEADERS_NOT_AVAILABLE", True, True),
        ErrorCode(ELECTION_NOT_NEEDED, "ELECTION_NOT_NEEDED", True, True),
        ErrorCode(NO_REASSIGNMENT_IN_PROGRESS, "NO_REASSIGNMENT_IN_PROGRESS", False, False),
        ErrorCode(GROUP_SUBSCRIBED_TO_TOPIC, "GROUP_SUBSCRIBED_TO_TOPIC", False, False),
        ErrorCode(INVALID_RECORD, "INVALID_RECORD", False, False),
        ErrorCode(UNSTABLE_OFFSET_COMMIT, "UNSTABLE_OFFSET_COMMIT", True, False),
        ErrorCode(THROTTLING_QUOTA_EXCEEDED, "THROTTLING_QUOTA_EXCEEDED", True, False),
        ErrorCode(PRODUCER_FENCED, "PRODUCER_FENCED", False, False),
        ErrorCode(RESOURCE_NOT_FOUND, "RESOURCE_NOT_FOUND", False, False),
        ErrorCode(DUPLICATE_RESOURCE, "DUPLICATE_RESOURCE", False, False),
        ErrorCode(UNACCEPTABLE_CREDENTIAL, "UNACCEPTABLE_CREDENTIAL", False, False),
        ErrorCode(INCONSISTENT_VOTER_SET, "INCONSISTENT_VOTER_SET", False, False),
        ErrorCode(INVALID_UPDATE_VERSION, "INVALID_UPDATE_VERSION", False, False),
        ErrorCode(FEATURE_UPDATE_FAILED, "FEATURE_UPDATE_FAILED", False, False),
        ErrorCode(
            PRINCIPAL_DESERIALIZATION_FAILURE, "PRINCIPAL_DESERIALIZATION_FAILURE", False, False
        ),
        ErrorCode(SNAPSHOT_NOT_FOUND, "SNAPSHOT_NOT_FOUND", False, False),
        ErrorCode(POSITION_OUT_OF_RANGE, "POSITION_OUT_OF_RANGE", False, False),
        ErrorCode(UNKNOWN_TOPIC_ID, "UNKNOWN_TOPIC_ID", True, True),
        ErrorCode(DUPLICATE_BROKER_REGISTRATION, "DUPLICATE_BROKER_REGISTRATION", False, False),
        ErrorCode(BROKER_ID_NOT_REGISTERED, "BROKER_ID_NOT_REGISTERED", False, False),
        ErrorCode(INCONSISTENT_TOPIC_ID, "INCONSISTENT_TOPIC_ID", True, True),
        ErrorCode(INCONSISTENT_CLUSTER_ID, "INCONSISTENT_CLUSTER_ID", False, False),
        ErrorCode(TRANSACTIONAL_ID_NOT_FOUND, "TRANSACTIONAL_ID_NOT_FOUND", False, False),
        ErrorCode(FETCH_SESSION_TOPIC_ID_ERROR, "FETCH_SESSION_TOPIC_ID_ERROR", True, False),
        ErrorCode(INELIGIBLE_REPLICA, "INELIGIBLE_REPLICA", False, False),
        ErrorCode(NEW_LEADER_ELECTED, "NEW_LEADER_ELECTED", False, False),
        ErrorCode(OFFSET_MOVED_TO_TIERED_STORAGE, "OFFSET_MOVED_TO_TIERED_STORAGE", False, False),
        ErrorCode(FENCED_MEMBER_EPOCH, "FENCED_MEMBER_EPOCH", False, False),
        ErrorCode(UNRELEASED_INSTANCE_ID, "UNRELEASED_INSTANCE_ID", False, False),
        ErrorCode(UNSUPPORTED_ASSIGNOR, "UNSUPPORTED_ASSIGNOR", False, False),
        ErrorCode(STALE_MEMBER_EPOCH, "STALE_MEMBER_EPOCH", False, False),
        ErrorCode(MISMATCHED_ENDPOINT_TYPE, "MISMATCHED_ENDPOINT_TYPE", False, False),
        ErrorCode(UNSUPPORTED_ENDPOINT_TYPE, "UNSUPPORTED_ENDPOINT_TYPE", False, False),
        ErrorCode(UNKNOWN_CONTROLLER_ID, "UNKNOWN_CONTROLLER_ID", False, False),
        ErrorCode(UNKNOWN_SUBSCRIPTION_ID, "UNKNOWN_SUBSCRIPTION_ID", False, False),
        ErrorCode(TELEMETRY_TOO_LARGE, "TELEMETRY_TOO_LARGE", False, False),
        ErrorCode(INVALID_REGISTRATION, "INVALID_REGISTRATION", False, False),
        ErrorCode(TRANSACTION_ABORTABLE, "TRANSACTION_ABORTABLE", False, False),
        ErrorCode(INVALID_RECORD_STATE, "INVALID_RECORD_STATE", False, False),
        ErrorCode(SHARE_SESSION_NOT_FOUND, "SHARE_SESSION_NOT_FOUND", True, False),
        ErrorCode(INVALID_SHARE_SESSION_EPOCH, "INVALID_SHARE_SESSION_EPOCH", True, False),
        ErrorCode(FENCED_STATE_EPOCH, "FENCED_STATE_EPOCH", False, False),
        ErrorCode(INVALID_VOTER_KEY, "INVALID_VOTER_KEY", False, False),
        ErrorCode(DUPLICATE_VOTER, "DUPLICATE_VOTER", False, False),
        ErrorCode(VOTER_NOT_FOUND, "VOTER_NOT_FOUND", False, False),
        ErrorCode(INVALID_REGULAR_EXPRESSION, "INVALID_REGULAR_EXPRESSION", False, False),
        ErrorCode(REBOOTSTRAP_REQUIRED, "REBOOTSTRAP_REQUIRED", False, False),
        ErrorCode(STREAMS_INVALID_TOPOLOGY, "STREAMS_INVALID_TOPOLOGY", False, False),
        ErrorCode(STREAMS_INVALID_TOPOLOGY_EPOCH, "STREAMS_INVALID_TOPOLOGY_EPOCH", False, False),
        ErrorCode(STREAMS_TOPOLOGY_FENCED, "STREAMS_TOPOLOGY_FENCED", False, False),
        ErrorCode(SHARE_SESSION_LIMIT_REACHED, "SHARE_SESSION_LIMIT_REACHED", True, False),
    )
}


def error_name(code: int) -> str:
    """Return the name of a code, or "ERROR_" and the number for an unknown one."""
    known = ERRORS.get(code)
    return known.name if known is not None else f"ERROR_{code}"


class TarryError(Exception):
    """Base of the errors that Tarry raises to its users.  The text is a sentence for the user.

    Errors of one class with the same text and the same fields are equal.  Each can be pickled and
    copied, whatever its constructor takes."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TarryError) or type(other) is not type(self):
            return False
        return self.args == other.args and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.args)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_error, (type(self), self.args, vars(self))


def restored_error(kind: type[TarryError], args: tuple[Any, ...], fields: Any) -> TarryError:
    """Make a copy of an error without calling its constructor."""
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


class ProtocolViolation(TarryError):
    """The peer broke the protocol; its connection is closed with one line in the log."""


class StorageError(TarryError):
    """The disk failed (EIO) or is full (`DiskFull`), or a file is missing or cannot be opened at
    present (`TooManyOpenFiles`).
    """


class DiskFull(StorageError):
    """Error of a disk without room, or of a used-up quota."""


class TooManyOpenFiles(StorageError):
    """Error of a process, or of a system, that may open no more files."""


class FlushFailed(TarryError):
    """A flush failed: its bytes may be lost, and a second try would prove nothing."""


class CorruptData(TarryError):
    """Bytes that are not valid: a wrong CRC, a length beyond the end."""


class InvalidSetting(TarryError):
    """A setting is unknown, malformed or out of range; the text says what to write instead."""
