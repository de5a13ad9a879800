"""Etcd: the door to the store that several brokers share.

A call begins with `begin_…`, which returns its id at once.  It ends as one event `ETCD` with an
answer of that id.  A watch reports every later revision, whole and in order, until it ends.

The store promises what etcd promises: a transaction is done as a whole or not at all, reads are
linearizable, each transaction that wrote has its own revision.  If a call fails, its answer says
whether it may have been done all the same; then it may even be done later.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from tarry.base.doors import ETCD, Event

# etcd refuses a transaction with more compares or more operations.
COMPARES_MAX: Final = 128
OPERATIONS_MAX: Final = 128

# Largest number of changed rows that a tally names.
TALLIED_MAX: Final = 2_000


class Compare(msgspec.Struct, frozen=True):
    """Condition on a key's revision; a missing key has revision 0.

    `of` names the revision: "create" is the one in which the key was made, "mod" that of its
    newest value.  "newest" is a condition on all keys that begin with `key`: none has a value newer
    than `revision`.
    """

    key: bytes
    of: str
    revision: int
    is_equal: bool = True


class Put(msgspec.Struct, frozen=True):
    """Write of a key; with `lease_id` the key is removed when the lease ends."""

    key: bytes
    value: bytes
    lease_id: int = 0


class Remove(msgspec.Struct, frozen=True):
    """Removal of a key, or of all keys that begin with it; a missing key is no error."""

    key: bytes
    is_prefix: bool = False


Operation = Put | Remove


class Row(msgspec.Struct, frozen=True):
    """A key as it is stored; revisions count the store's transactions."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    lease_id: int = 0


class Removed(msgspec.Struct, frozen=True):
    """Key that a revision removed."""

    key: bytes
    mod_revision: int


class EtcdAnswer(msgspec.Struct, frozen=True):
    """End of the call with this id, or a report of the watch with this id."""

    call_id: int


class TransactionEnded(EtcdAnswer, frozen=True):
    """Transaction that was done as a whole or, if a compare failed, not at all.

    `revision` is the store's revision at that time, at which the compares were evaluated.
    """

    is_done: bool
    revision: int


class RowsRead(EtcdAnswer, frozen=True):
    """Rows below a prefix, all of them as they were at `revision`, in the order of their keys."""

    rows: list[Row]
    revision: int


class RowsTallied(EtcdAnswer, frozen=True):
    """Tally of the rows below a prefix at the requested revision.

    `count` is the number of all rows.  `changed` has the `mod_revision`, by key, of the rows that
    were put in `from_revision` or later: the oldest `TALLIED_MAX` of them.
    """

    count: int
    changed: dict[bytes, int]


class LeaseGranted(EtcdAnswer, frozen=True):
    """Lease that ends `ttl_ms` after its last renewal, at the earliest."""

    lease_id: int
    ttl_ms: int


class LeaseRenewed(EtcdAnswer, frozen=True):
    """Renewal of a lease; `ttl_ms` is 0 if the lease has ended and its keys are gone."""

    ttl_ms: int


class LeaseRevoked(EtcdAnswer, frozen=True):
    """Lease that was ended, or had ended before; its keys are gone."""


class StatusRead(EtcdAnswer, frozen=True):
    """State of the member that answered: release, ids, whether it may still write.

    `alarms` holds etcd's names of its faults, such as "NOSPACE".  `size_bytes` is the size of its
    file, `used_bytes` that of the content, `quota_bytes` the limit; 0 if etcd does not report it.
    """

    version: str
    etcd_cluster_id: int
    revision: int
    alarms: list[str]
    size_bytes: int = 0
    used_bytes: int = 0
    quota_bytes: int = 0


class CallFailed(EtcdAnswer, frozen=True):
    """Call without a proper answer.

    `is_unknown`: it may have been done, or may be done later.  Otherwise it never was and never
    will be.
    """

    reason: str
    is_unknown: bool


class RevisionSeen(EtcdAnswer, frozen=True):
    """Changes below the watched prefix in one revision; without changes it reports progress."""

    revision: int
    changes: list[Row | Removed]


class WatchEnded(EtcdAnswer, frozen=True):
    """End of a watch.  If `compact_revision` is not 0, older revisions are gone: read all rows."""

    reason: str
    compact_revision: int = 0


class EtcdEvent(Event):
    """Event of the kind `ETCD`, with the answer."""

    __slots__ = ("answer",)

    def __init__(self, answer: EtcdAnswer) -> None:
        super().__init__(ETCD)
        self.answer = answer


class Etcd(Protocol):
    """Store that several brokers share.  A call has no time-out: the caller cancels it."""

    def begin_transaction(self, compares: list[Compare], operations: list[Operation]) -> int:
        """Do all operations if all compares hold; ends as `TransactionEnded`."""

    def begin_read(self, prefix: bytes) -> int:
        """Read all rows whose keys begin with `prefix`, at one revision; ends as `RowsRead`."""

    def begin_tally(self, prefix: bytes, from_revision: int, at_revision: int) -> int:
        """Count the rows whose keys begin with `prefix` as they were at `at_revision`, and name
        those that were put in `from_revision` or later; ends as `RowsTallied`.

        It fails if `at_revision` was compacted away.
        """

    def begin_grant(self, ttl_ms: int) -> int:
        """Make a lease for at least `ttl_ms`, in whole seconds; ends as `LeaseGranted`."""

    def begin_renew(self, lease_id: int) -> int:
        """Keep a lease alive; ends as `LeaseRenewed`."""

    def begin_revoke(self, lease_id: int) -> int:
        """End a lease and remove its keys; ends as `LeaseRevoked`."""

    def begin_status(self) -> int:
        """Ask the member that answers for its state; ends as `StatusRead`."""

    def watch(self, prefix: bytes, from_revision: int) -> int:
        """Watch every revision from this one on; any number of `RevisionSeen`, one `WatchEnded`.

        To continue after the end, begin another watch.
        """

    def ask_progress(self) -> None:
        """Make every watch report the newest revision that it has seen whole."""

    def cancel(self, call_id: int) -> None:
        """Stop waiting for this call or watch; it ends as `CallFailed` or `WatchEnded` at once.

        If nothing came on the link while a cancelled call waited, the link is given up for another
        endpoint.
        """
