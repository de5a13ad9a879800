"""Calls of etcd's API: requests from the door's types, and answers as the door's types."""

from __future__ import annotations

from typing import Final

from tarry.base.etcd import TALLIED_MAX, Compare, Operation, Put, Row
from tarry.runtime.etcd import etcd_pb2 as pb

RANGE: Final = "/etcdserverpb.KV/Range"
TRANSACTION: Final = "/etcdserverpb.KV/Txn"
GRANT: Final = "/etcdserverpb.Lease/LeaseGrant"
RENEW: Final = "/etcdserverpb.Lease/LeaseKeepAlive"
REVOKE: Final = "/etcdserverpb.Lease/LeaseRevoke"
WATCH: Final = "/etcdserverpb.Watch/Watch"
STATUS: Final = "/etcdserverpb.Maintenance/Status"
AUTHENTICATE: Final = "/etcdserverpb.Auth/Authenticate"

# Rows in one answer, at first and at most: most have some 80 bytes, a topic's up to 100 KB.
ROWS_PER_PAGE_FIRST: Final = 500
ROWS_PER_PAGE_MAX: Final = 2_000

# Bytes that an answer should not exceed: decoding them takes 5 ms.
PAGE_BYTES: Final = 1024 * 1024

# Bytes of all rows of one read; 200,000 partitions have 20 MB.
READ_BYTES_MAX: Final = 512 * 1024 * 1024

NOT_FOUND: Final = 5
UNAUTHENTICATED: Final = 16

# gRPC statuses by which etcd refuses a request: arguments, permissions, space, its rate.  All other
# statuses may come while the transaction is under way between the members (no leader, time-outs).
_REFUSALS: Final = frozenset((3, NOT_FOUND, 6, 7, 8, 9, 11, 12, UNAUTHENTICATED))

_TARGETS: Final = {"create": pb.Compare.CREATE, "mod": pb.Compare.MOD}


def is_refusal(status: int) -> bool:
    """Return True if this gRPC status means that nothing was done and nothing will be."""
    return status in _REFUSALS


def encode_transaction(compares: list[Compare], operations: list[Operation]) -> bytes:
    """Encode the request of a transaction."""
    request = pb.TxnRequest(
        compare=[_compare(each) for each in compares],
        success=[_operation(each) for each in operations],
    )
    return request.SerializeToString()


def rows_of_next_page(rows: int, size: int) -> int:
    """Return how many rows to ask for after a page of `size` bytes that was asked for `rows`."""
    if size > PAGE_BYTES:
        return max(1, rows * PAGE_BYTES // size)
    return min(2 * rows, ROWS_PER_PAGE_MAX)


def encode_page(prefix: bytes, begin: bytes, revision: int, rows: int) -> bytes:
    """Encode the request for one page of rows below `prefix`, from the key `begin` on.

    `revision` 0 means the newest.
    """
    request = pb.RangeRequest(
        key=begin, range_end=range_end_of(prefix), limit=rows, revision=revision
    )
    return request.SerializeToString()


def encode_tally(prefix: bytes, from_revision: int, at_revision: int) -> bytes:
    """Encode the request for the keys below `prefix` that were put between two revisions.

    The answer's count includes all other keys below `prefix`.
    """
    request = pb.RangeRequest(
        key=prefix,
        range_end=range_end_of(prefix),
        limit=TALLIED_MAX,
        revision=at_revision,
        sort_order=pb.RangeRequest.ASCEND,
        sort_target=pb.RangeRequest.BY_MOD,
        keys_only=True,
        min_mod_revision=from_revision,
    )
    return request.SerializeToString()


def encode_watch(prefix: bytes, from_revision: int) -> bytes:
    """Encode the request that begins a watch."""
    create = pb.WatchCreateRequest(
        key=prefix,
        range_end=range_end_of(prefix),
        start_revision=from_revision,
        fragment=True,
    )
    return pb.WatchRequest(create_request=create).SerializeToString()


def row_of(pair: pb.KeyValue) -> Row:
    """Return the row that etcd describes."""
    return Row(pair.key, pair.value, pair.create_revision, pair.mod_revision, pair.lease)


def range_end_of(prefix: bytes) -> bytes:
    """Return the first key behind all that begin with `prefix`; b"\\0" if there is none."""
    for position in reversed(range(len(prefix))):
        if prefix[position] < 0xFF:
            return prefix[:position] + bytes([prefix[position] + 1])
    return b"\0"


def _compare(compare: Compare) -> pb.Compare:
    if compare.of == "newest":
        return pb.Compare(
            result=pb.Compare.LESS,
            target=pb.Compare.MOD,
            key=compare.key,
            range_end=range_end_of(compare.key),
            mod_revision=compare.revision + 1,
        )
    result = pb.Compare.EQUAL if compare.is_equal else pb.Compare.NOT_EQUAL
    request = pb.Compare(result=result, target=_TARGETS[compare.of], key=compare.key)
    if compare.of == "create":
        request.create_revision = compare.revision
    else:
        request.mod_revision = compare.revision
    return request


def _operation(operation: Operation) -> pb.RequestOp:
    if isinstance(operation, Put):
        put = pb.PutRequest(key=operation.key, value=operation.value, lease=operation.lease_id)
        return pb.RequestOp(request_put=put)
    range_end = range_end_of(operation.key) if operation.is_prefix else b""
    removal = pb.DeleteRangeRequest(key=operation.key, range_end=range_end)
    return pb.RequestOp(request_delete_range=removal)
