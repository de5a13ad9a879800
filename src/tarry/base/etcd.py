"""Etcd: the door to the store that several brokers share.

A call begins with `begin_…`, which returns its id at once; it ends as one event `ETCD` with an
answer of that id.  A watch tells of every later revision, whole and in order, until it ends.

What the store promises is etcd's: a transaction is done as a whole or not at all, reads are
linearizable, a revision counts every transaction that wrote.  A call that fails says whether it
may have been done all the same: then the deed may even come later.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from tarry.base.doors import ETCD, Event

# etcd refuses a transaction with more compares or more operations.
COMPARES_MAX: Final = 128
OPERATIONS_MAX: Final = 128

# So many changed rows a tally names at most.
TALLIED_MAX: Final = 2_000


class Compare(msgspec.Struct, frozen=True):
    """Condition on a key's revision; 0 is that of a key which is not there.

    `of` names the revision: "create" when the key came into being, "mod" of its newest value.
    "newest" is a condition on all keys that begin with `key`: no value is newer than `revision`.
    """

    key: bytes
    of: str
    revision: int
    is_equal: bool = True


class Put(msgspec.Struct, frozen=True):
    """Write of a key.  With `lease_id` the key goes when the lease ends; without it stays."""

    key: bytes
    value: bytes
    lease_id: int = 0


class Remove(msgspec.Struct, frozen=True):
    """Removal of a key, or of all keys that begin with it; quiet if there is none."""

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
    """A key that went in a revision."""

    key: bytes
    mod_revision: int


class EtcdAnswer(msgspec.Struct, frozen=True):
    """End of the call with this id, or news of the watch with this id."""

    call_id: int


class TransactionEnded(EtcdAnswer, frozen=True):
    """Transaction that was done as a whole or, when a compare failed, not at all.

    `revision` is the store's then; what is true of the compares was true at it.
    """

    is_done: bool
    revision: int


class RowsRead(EtcdAnswer, frozen=True):
    """Rows below a prefix, all of them as they were at `revision`, in the order of their keys."""

    rows: list[Row]
    revision: int


class RowsTallied(EtcdAnswer, frozen=True):
    """Tally of the rows below a prefix at the revision that was asked for.

    `count` is that of all rows; `changed` has the `mod_revision` by key of those that were put in
    the revision that was asked from, or later: the oldest `TALLIED_MAX` of them.
    """

    count: int
    changed: dict[bytes, int]


class LeaseGranted(EtcdAnswer, frozen=True):
    """Lease that ends `ttl_ms` after its last renewal, at the earliest."""

    lease_id: int
    ttl_ms: int


class LeaseRenewed(EtcdAnswer, frozen=True):
    """Renewal of a lease; `ttl_ms` 0: the lease is over, and its keys are gone."""

    ttl_ms: int


class LeaseRevoked(EtcdAnswer, frozen=True):
    """Lease that was ended, or had ended before; its keys are gone."""


class StatusRead(EtcdAnswer, frozen=True):
    """State of the member that was asked: release, ids, whether it may still write.

    `alarms` holds etcd's names of what is wrong, "NOSPACE" for one.  `size_bytes` is that of its
    file, `used_bytes` of what is in it, `quota_bytes` what it may become; 0 where it is not told.
    """

    version: str
    etcd_cluster_id: int
    revision: int
    alarms: list[str]
    size_bytes: int = 0
    used_bytes: int = 0
    quota_bytes: int = 0


class CallFailed(EtcdAnswer, frozen=True):
    """Call that was not answered as it should be.

    `is_unknown`: it may have been done, or be done later.  Else nothing was and will be done.
    """

    reason: str
    is_unknown: bool


class RevisionSeen(EtcdAnswer, frozen=True):
    """Changes below the watched prefix in one revision; none: progress."""

    revision: int
    changes: list[Row | Removed]


class WatchEnded(EtcdAnswer, frozen=True):
    """End of a watch.  `compact_revision` not 0: older revisions are gone, read all rows anew."""

    reason: str
    compact_revision: int = 0


class EtcdEvent(Event):
    """Event of the kind `ETCD`."""

    __slots__ = ("answer",)

    def __init__(self, answer: EtcdAnswer) -> None:
        super().__init__(ETCD)
        self.answer = answer


class Etcd(Protocol):
    """The store that several brokers share.  A call waits for no time: who waits cancels it."""

    def begin_transaction(self, compares: list[Compare], operations: list[Operation]) -> int:
        """Do all operations if all compares hold; ends as `TransactionEnded`."""

    def begin_read(self, prefix: bytes) -> int:
        """Read all rows whose keys begin with `prefix`, at one revision; ends as `RowsRead`."""

    def begin_tally(self, prefix: bytes, from_revision: int, at_revision: int) -> int:
        """Count the rows whose keys begin with `prefix` as they were at one revision, and name
        those that were put from another on; ends as `RowsTallied`.

        It fails if the revision that it is asked for was compacted away.
        """

    def begin_grant(self, ttl_ms: int) -> int:
        """Have a lease made, for whole seconds at least as long; ends as `LeaseGranted`."""

    def begin_renew(self, lease_id: int) -> int:
        """Keep a lease alive; ends as `LeaseRenewed`."""

    def begin_revoke(self, lease_id: int) -> int:
        """End a lease and remove its keys; ends as `LeaseRevoked`."""

    def begin_status(self) -> int:
        """Ask the member that answers how it is; ends as `StatusRead`."""

    def watch(self, prefix: bytes, from_revision: int) -> int:
        """Tell of every revision from this one on; any number of `RevisionSeen`, one `WatchEnded`.

        A watch that was ended before goes on as a new one.
        """

    def ask_progress(self) -> None:
        """Have every watch tell how far it is: the newest revision that it has seen whole."""

    def cancel(self, call_id: int) -> None:
        """Wait for this call or watch no longer; it ends as `CallFailed` or `WatchEnded` at once.

        A link from which nothing came while a cancelled call waited is given up for another
        endpoint.
        """
