"""A simulated etcd: one store in memory, and a door to it for each broker, with faults from a seed.

The store keeps every promise of etcd.  Where etcd allows several outcomes, the seed chooses one: a
lease ends late, a request or its answer is lost, a request takes effect after its caller has given
up, a watch is late, or a watch ends because its revisions were compacted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from tarry.base.etcd import (
    COMPARES_MAX,
    OPERATIONS_MAX,
    TALLIED_MAX,
    CallFailed,
    Compare,
    EtcdAnswer,
    EtcdEvent,
    LeaseGranted,
    LeaseRenewed,
    LeaseRevoked,
    Operation,
    Put,
    Removed,
    RevisionSeen,
    Row,
    RowsRead,
    RowsTallied,
    StatusRead,
    TransactionEnded,
    WatchEnded,
)

VERSION: Final = "3.6.16"


class EtcdRefusal(Exception):
    """Request that etcd refuses; nothing was done."""


class _Lease:
    __slots__ = ("deadline_ms", "keys", "ttl_ms")

    def __init__(self, ttl_ms: int, deadline_ms: int) -> None:
        self.ttl_ms = ttl_ms
        self.deadline_ms = deadline_ms
        # Keys under the lease, in the order in which they were put.
        self.keys: dict[bytes, None] = {}


class SimulatedEtcd:
    """The store itself; times are of the simulation's clock, in ms."""

    def __init__(self, random: Random, now_ms: int = 0) -> None:
        self._random = random
        self.now_ms = now_ms
        self.revision = 1
        self.compact_revision = 0
        self.cluster_id = random.getrandbits(63)
        # Longest time between the deadline of a lease and its end, in ms.
        self.late_expiry_ms_max = 0
        self.has_space = True
        self._rows: dict[bytes, Row] = {}
        self._leases: dict[int, _Lease] = {}
        # Changes of each revision from `compact_revision` on.
        # `_before`: for each revision, the mod revision that each changed key had before, or 0 if
        # the key was absent.
        self._history: list[tuple[int, list[Row | Removed]]] = []
        self._before: dict[int, dict[bytes, int]] = {}
        self.doors: list[SimulatedEtcdDoor] = []
        # Called after each revision with the id of its writer, the changes, and the rows as they
        # were before.
        self.on_revision: Callable[[int, list[Row | Removed], dict[bytes, Row]], None] | None = None
        # Id of the broker whose transaction is under way; 0 if no known broker writes.
        self.writer_id = 0

    # --- What calls do, each at one moment.

    def transact(self, compares: list[Compare], operations: list[Operation]) -> tuple[bool, int]:
        """Do all operations if all compares hold; return whether they did, and the revision.

        Raise `EtcdRefusal` where etcd would refuse.
        """
        if len(compares) > COMPARES_MAX or len(operations) > OPERATIONS_MAX:
            raise EtcdRefusal("too many operations in txn request")
        keys = [each.key for each in operations]
        if len(set(keys)) < len(keys):
            raise EtcdRefusal("duplicate key given in txn request")
        if not all(self._holds(each) for each in compares):
            return False, self.revision
        if any(isinstance(each, Put) for each in operations) and not self.has_space:
            raise EtcdRefusal("mvcc: database space exceeded")
        for each in operations:
            if isinstance(each, Put) and each.lease_id and each.lease_id not in self._leases:
                raise EtcdRefusal("requested lease not found")
        self._write(operations)
        return True, self.revision

    def row(self, key: bytes) -> Row | None:
        """Return the row of one key."""
        return self._rows.get(key)

    def rows(self, prefix: bytes) -> list[Row]:
        """Return all rows below a prefix, in the order of their keys."""
        return [self._rows[key] for key in sorted(self._rows) if key.startswith(prefix)]

    def revisions_at(self, prefix: bytes, revision: int) -> dict[bytes, int]:
        """Return by key the revisions of all rows below a prefix as they were at a revision."""
        if revision > self.revision:
            raise EtcdRefusal("mvcc: required revision is a future revision")
        if revision < self.compact_revision:
            raise EtcdRefusal("mvcc: required revision has been compacted")
        found = {row.key: row.mod_revision for row in self._rows.values()}
        for later in range(self.revision, revision, -1):
            found.update(self._before.get(later, {}))
        return {key: at for key, at in sorted(found.items()) if at and key.startswith(prefix)}

    def grant(self, ttl_ms: int) -> int:
        """Make a lease and return its id."""
        lease_id = self._random.getrandbits(62) + 1
        ttl_ms = -(-ttl_ms // 1_000) * 1_000
        self._leases[lease_id] = _Lease(ttl_ms, self.now_ms + ttl_ms)
        return lease_id

    def renew(self, lease_id: int) -> int:
        """Renew a lease and return its time to live, in ms; 0 if it is over."""
        lease = self._leases.get(lease_id)
        if lease is None:
            return 0
        lease.deadline_ms = self.now_ms + lease.ttl_ms
        return lease.ttl_ms

    def revoke(self, lease_id: int) -> None:
        """End a lease and remove its keys in one revision."""
        lease = self._leases.pop(lease_id, None)
        if lease is not None and lease.keys:
            self._remove(list(lease.keys))

    def compact(self, revision: int) -> None:
        """Forget the changes below this revision: no watch begins earlier."""
        self.compact_revision = max(self.compact_revision, min(revision, self.revision))
        self._history = [each for each in self._history if each[0] >= self.compact_revision]
        for earlier in [each for each in self._before if each <= self.compact_revision]:
            del self._before[earlier]

    def changes_from(self, revision: int) -> list[tuple[int, list[Row | Removed]]]:
        """Return the changes from this revision on, which must not be compacted away."""
        assert revision >= self.compact_revision
        return [each for each in self._history if each[0] >= revision]

    def advance(self, now_ms: int) -> None:
        """Move the clock, and end leases past their deadline, at once or later."""
        self.now_ms = now_ms
        for lease_id in list(self._leases):
            late_ms = self._random.randrange(self.late_expiry_ms_max + 1)
            if self._leases[lease_id].deadline_ms + late_ms < now_ms:
                self.revoke(lease_id)

    # --- Rows.

    def _holds(self, compare: Compare) -> bool:
        if compare.of == "newest":
            return all(
                row.mod_revision <= compare.revision
                for key, row in self._rows.items()
                if key.startswith(compare.key)
            )
        row = self._rows.get(compare.key)
        if row is None:
            revision = 0
        else:
            revision = row.create_revision if compare.of == "create" else row.mod_revision
        return (revision == compare.revision) == compare.is_equal

    def _write(self, operations: list[Operation]) -> None:
        revision = self.revision + 1
        changes: list[Row | Removed] = []
        rows_before = dict(self._rows)
        for each in operations:
            if isinstance(each, Put):
                before = self._take_out(each.key)
                created = revision if before is None else before.create_revision
                row = Row(each.key, each.value, created, revision, each.lease_id)
                self._rows[each.key] = row
                if each.lease_id:
                    self._leases[each.lease_id].keys[each.key] = None
                changes.append(row)
                continue
            keys = [row.key for row in self.rows(each.key)] if each.is_prefix else [each.key]
            for key in keys:
                if self._take_out(key) is not None:
                    changes.append(Removed(key, revision))
        if changes:
            self.revision = revision
            self._note(revision, changes, rows_before)

    def _take_out(self, key: bytes) -> Row | None:
        row = self._rows.pop(key, None)
        if row is not None and row.lease_id:
            self._leases[row.lease_id].keys.pop(key, None)
        return row

    def _remove(self, keys: list[bytes]) -> None:
        self.revision += 1
        rows_before = dict(self._rows)
        for key in keys:
            del self._rows[key]
        self._note(self.revision, [Removed(key, self.revision) for key in keys], rows_before)

    def _note(
        self, revision: int, changes: list[Row | Removed], rows_before: dict[bytes, Row]
    ) -> None:
        self._history.append((revision, changes))
        before = self._before[revision] = {}
        for each in changes:
            row = rows_before.get(each.key)
            before[each.key] = 0 if row is None else row.mod_revision
        if self.on_revision is not None:
            self.on_revision(self.writer_id, changes, rows_before)


class _Watch(msgspec.Struct):
    """Watch of one door, with the next revision that it reports."""

    call_id: int
    prefix: bytes
    next_revision: int


class SimulatedEtcdDoor:
    """The door `Etcd` of one broker.  `step` brings what is due; `post` receives the events.

    Each call reaches the store after a delay, and its answer comes after another.  While `is_away`
    is true no call passes.  The next `lose_requests` calls never reach the store; of the next
    `lose_answers` calls the store does each one, and the answer is lost.  A call that is cancelled
    on its way is still done.  `lateness` returns the additional delay of a transaction, in ms.
    """

    def __init__(
        self, etcd: SimulatedEtcd, random: Random, post: Callable[[EtcdEvent], None]
    ) -> None:
        self.etcd = etcd
        self._random = random
        self._post = post
        # Id of the broker that has this door; 0 if no known broker has it.
        self.owner_id = 0
        self.delay_ms_max = 0
        self.is_away = False
        self.lose_answers = 0
        self.lose_requests = 0
        self.lateness: Callable[[list[Operation]], int] | None = None
        # Called when a lease was renewed, while the answer is on its way.
        self.on_renewed: Callable[[], None] | None = None
        # Newest revision that the watches report; None if there is no limit.
        self.watch_limit: int | None = None
        # Revisions that no watch ever reports, as if etcd had lost their events.
        self.lost_revisions: dict[int, None] = {}
        self._last_call_id = 0
        self._order = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        # Kinds of the calls that wait, by call id: they say what a failure means.
        self._waiting: dict[int, _Kind] = {}
        self._watches: dict[int, _Watch] = {}
        etcd.doors.append(self)

    # --- The door.

    def begin_transaction(self, compares: list[Compare], operations: list[Operation]) -> int:
        def deed(call_id: int) -> EtcdAnswer:
            self.etcd.writer_id = self.owner_id
            is_done, revision = self.etcd.transact(compares, operations)
            self.etcd.writer_id = 0
            return TransactionEnded(call_id, is_done, revision)

        late_ms = 0 if self.lateness is None or self.is_away else self.lateness(operations)
        return self._begin(deed, late_ms=late_ms)

    def begin_read(self, prefix: bytes) -> int:
        return self._begin(
            lambda call_id: RowsRead(call_id, self.etcd.rows(prefix), self.etcd.revision),
            changes=False,
        )

    def begin_tally(self, prefix: bytes, from_revision: int, at_revision: int) -> int:
        def deed(call_id: int) -> EtcdAnswer:
            revisions = self.etcd.revisions_at(prefix, at_revision)
            changed = [each for each in revisions.items() if each[1] >= from_revision]
            changed.sort(key=lambda each: each[1])
            return RowsTallied(call_id, len(revisions), dict(changed[:TALLIED_MAX]))

        return self._begin(deed, changes=False)

    def begin_grant(self, ttl_ms: int) -> int:
        def deed(call_id: int) -> EtcdAnswer:
            lease_id = self.etcd.grant(ttl_ms)
            return LeaseGranted(call_id, lease_id, self.etcd.renew(lease_id))

        return self._begin(deed)

    def begin_renew(self, lease_id: int) -> int:
        def deed(call_id: int) -> EtcdAnswer:
            ttl_ms = self.etcd.renew(lease_id)
            if self.on_renewed is not None:
                self.on_renewed()
            return LeaseRenewed(call_id, ttl_ms)

        return self._begin(deed)

    def begin_revoke(self, lease_id: int) -> int:
        def deed(call_id: int) -> EtcdAnswer:
            self.etcd.revoke(lease_id)
            return LeaseRevoked(call_id)

        return self._begin(deed)

    def begin_status(self) -> int:
        def deed(call_id: int) -> EtcdAnswer:
            alarms = [] if self.etcd.has_space else ["NOSPACE"]
            return StatusRead(call_id, VERSION, self.etcd.cluster_id, self.etcd.revision, alarms)

        return self._begin(deed, changes=False)

    def watch(self, prefix: bytes, from_revision: int) -> int:
        call_id = self._next_id()
        if self.is_away:
            self._tell(WatchEnded(call_id, "cannot be reached"))
        else:
            # Without a revision from the caller, the watch begins with the next one.
            first = from_revision or self.etcd.revision + 1
            self._watches[call_id] = _Watch(call_id, prefix, first)
        return call_id

    def ask_progress(self) -> None:
        if self.is_away:
            return
        for watch in self._watches.values():
            if watch.next_revision > self.etcd.revision:
                self._tell(RevisionSeen(watch.call_id, self.etcd.revision, []))

    def cancel(self, call_id: int) -> None:
        if call_id in self._watches:
            del self._watches[call_id]
            self._tell(WatchEnded(call_id, "cancelled"))
        elif call_id in self._waiting:
            self._fail(call_id, "not answered in time")

    # --- The world's.

    @property
    def is_hindered(self) -> bool:
        """True while calls of this door are lost or late, or its watches are limited."""
        has_losses = self.lose_answers > 0 or self.lose_requests > 0
        return has_losses or self.lateness is not None or self.watch_limit is not None

    def step(self) -> None:
        """Deliver requests and answers that are due, and report new revisions to watches."""
        now_ms = self.etcd.now_ms
        while self._due and self._due[0][0] <= now_ms:
            _, _, act = heapq.heappop(self._due)
            act()
        if not self.is_away:
            for watch in list(self._watches.values()):
                self._hear(watch)

    def go_away(self) -> None:
        """Cut the link: each waiting call fails, and its request may be done or not."""
        self.is_away = True
        self.cut()

    def cut(self) -> None:
        """Lose the link once: waiting calls fail, and new ones pass at once."""
        for call_id in list(self._waiting):
            self._fail(call_id, "the link was lost")
        for call_id in list(self._watches):
            del self._watches[call_id]
            self._tell(WatchEnded(call_id, "the link was lost"))

    def repeat(self, revisions: int) -> None:
        """Let the watches report their last revisions once more."""
        for watch in self._watches.values():
            first = max(watch.next_revision - revisions, self.etcd.compact_revision)
            watch.next_revision = min(watch.next_revision, first)

    def drop(self) -> None:
        """Lose the requests and the answers that are on their way."""
        self._due.clear()

    def come_back(self) -> None:
        """Let calls pass again."""
        self.is_away = False

    # --- Calls.

    def _begin(
        self, deed: Callable[[int], EtcdAnswer], *, changes: bool = True, late_ms: int = 0
    ) -> int:
        call_id = self._next_id()
        if self.is_away:
            self._tell(CallFailed(call_id, "cannot be reached", is_unknown=False))
            return call_id
        self._waiting[call_id] = _Kind(changes)
        if self.lose_requests:
            self.lose_requests -= 1
        else:
            self._after(lambda: self._do(call_id, deed), late_ms)
        return call_id

    def _do(self, call_id: int, deed: Callable[[int], EtcdAnswer]) -> None:
        """Do the request of a call, even if its caller has given up."""
        try:
            answer = deed(call_id)
        except EtcdRefusal as error:
            answer = CallFailed(call_id, str(error), is_unknown=False)
        if self.lose_answers:
            self.lose_answers -= 1
            return
        self._after(lambda: self._answer(answer))

    def _answer(self, answer: EtcdAnswer) -> None:
        if self._waiting.pop(answer.call_id, None) is not None:
            self._tell(answer)

    def _fail(self, call_id: int, reason: str) -> None:
        kind = self._waiting.pop(call_id)
        self._tell(CallFailed(call_id, reason, is_unknown=kind.changes))

    def _hear(self, watch: _Watch) -> None:
        etcd = self.etcd
        if watch.next_revision < etcd.compact_revision:
            del self._watches[watch.call_id]
            reason = f"revisions below {etcd.compact_revision} were compacted away"
            self._tell(WatchEnded(watch.call_id, reason, etcd.compact_revision))
            return
        for revision, changes in etcd.changes_from(watch.next_revision):
            if self.watch_limit is not None and revision > self.watch_limit:
                break
            watch.next_revision = revision + 1
            seen = [each for each in changes if each.key.startswith(watch.prefix)]
            if seen and revision not in self.lost_revisions:
                self._tell(RevisionSeen(watch.call_id, revision, seen))

    def _after(self, act: Callable[[], None], late_ms: int = 0) -> None:
        self._order += 1
        due_ms = self.etcd.now_ms + late_ms + self._random.randrange(self.delay_ms_max + 1)
        heapq.heappush(self._due, (due_ms, self._order, act))

    def _tell(self, answer: EtcdAnswer) -> None:
        self._post(EtcdEvent(answer))

    def _next_id(self) -> int:
        self._last_call_id += 1
        return self._last_call_id


class _Kind(msgspec.Struct, frozen=True):
    """Kind of a call that waits: one that changes the store, or one that only reads."""

    changes: bool
