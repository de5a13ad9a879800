"""The life of a broker in a cluster: a key of a lease that the broker keeps alive.

A life begins when the key is made and its *broker epoch* is the revision of that; it ends with the
lease.  Whether it has ended is etcd's to say.  From `expires_ms` on, before etcd may end it, the
broker does nothing that needs a life: others may have buried it.  If etcd was away and has kept the
lease, the same life goes on.

The loop itself renews the lease: a loop that hangs loses it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tarry.base.etcd import (
    CallFailed,
    Compare,
    Etcd,
    EtcdAnswer,
    LeaseGranted,
    LeaseRenewed,
    LeaseRevoked,
    Operation,
    Put,
    TransactionEnded,
)
from tarry.base.turn import Turn
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import ROW_FORMAT, BrokerRow, LifeRow, encode_row
from tarry.cluster.state.levels import why_not_known
from tarry.cluster.state.state import STARTING
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

# Pause before a step is tried again that etcd has refused or not answered.
RETRY_MS: Final = 250
# Part of the time to live that a broker gives away, at least so many ms: for answers on their way
# and for clocks that differ.
MARGIN_MS_MIN: Final = 1_000
MARGIN_PART: Final = 5

NO_EPOCH: Final = -1


class Life:
    """The lives of this broker, one after the other.  `begin` starts; `on_answer` takes answers.

    `registration` is written
    with the first key; `directory_id`, if it is given, is that of another disk than the registered
    one.
    """

    def __init__(
        self,
        etcd: Etcd,
        known: KnownRows,
        broker_id: int,
        registration: BrokerRow,
        turn: Turn,
        timer: TimingWheel,
        *,
        ttl_ms: int,
        renew_ms: int,
        directory_id: str = "",
    ) -> None:
        self._etcd = etcd
        self._known = known
        self._broker_id = broker_id
        self._registration = registration
        # That of the disk on which this broker runs, registered or not.
        self._directory_id = directory_id or registration.directory_id
        self._turn = turn
        self._ttl_ms = ttl_ms
        self._renew_ms = renew_ms
        self._on_change: Callable[[], None] = _tell_nobody
        self._key = known.keys.life(broker_id)
        self._phase = STARTING
        # The phase that the key holds.
        self._stored_phase = ""
        # The key could not be written: the lease is renewed before that is tried again.
        self._has_put_failed = False
        # The call that is under way writes the key.
        self._is_putting = False
        self._lease_id = 0
        # Revision in which this life's key was made.
        self.broker_epoch = NO_EPOCH
        # The life that was lost last: its key is gone, though the watch may not have told.
        self._lost_epoch = NO_EPOCH
        self.has_lived = False
        # On the monotonic clock; nothing is done in this life from then on.
        self.expires_ms = 0
        # Why there is no life yet, for whoever waits for it; "" if there is.
        self.obstacle = "the lease was not granted yet"
        self._call_id = 0
        # The revocation by which this life was ended, until etcd has answered.
        self._revoke_id = 0
        self._sent_ms = 0
        # So long an answer is waited for: longer after one that did not come, since etcd may be
        # slow, and an answer counts as long as the lease that it speaks of.
        self._patience_ms = renew_ms
        self._alarm = Alarm(timer, turn, self.on_time)

    @property
    def is_alive(self) -> bool:
        """True while this broker may act in its life."""
        return self.left_ms > 0

    @property
    def left_ms(self) -> int:
        """Time for which this broker may act in its life; 0 or less: it may not."""
        return self.expires_ms - self._turn.monotonic_ms() if self.broker_epoch >= 0 else 0

    def begin(self, on_change: Callable[[], None]) -> None:
        """Begin a life as soon as etcd allows; `on_change` is called when it has begun or ended."""
        self._on_change = on_change
        self._step()

    def set_phase(self, phase: str) -> None:
        """Have others see this phase; stored as soon as possible."""
        self._phase = phase
        if self.broker_epoch >= 0 and not self._call_id:
            self._step()

    def register_disk(self) -> None:
        """Have the disk of this broker registered, as soon as possible: nobody counts on what is on
        the one before any more.
        """
        self._registration = replace(self._registration, directory_id=self._directory_id)
        if self.broker_epoch >= 0 and not self._call_id and not self._is_stored():
            self._step()

    def on_key_gone(self) -> None:
        """Begin another life: the watch tells that the key of this one is gone."""
        if self.broker_epoch >= 0:
            self._drop_call()
            self._end("the key of this life is gone")
            self._step()

    def leave(self) -> None:
        """End this life: the broker stops, and others need not wait for its lease."""
        self._alarm.cancel()
        if self._lease_id:
            self._revoke_id = self._etcd.begin_revoke(self._lease_id)
            self._lease_id = 0
        self.broker_epoch = NO_EPOCH
        # An answer that is still to come changes nothing.
        self._call_id = 0

    @property
    def has_left(self) -> bool:
        """True once etcd knows that this life is over, or cannot be told.

        A request whose link ends may not be carried out.
        """
        return not self._revoke_id

    def on_time(self) -> None:
        """Go on: the time of the next step has come, or that of an answer is over."""
        if self._call_id:
            patience_ms_max = self._ttl_ms - _margin_ms(self._ttl_ms)
            if self.broker_epoch >= 0:
                # Another member of etcd may answer, and the lease goes on meanwhile.
                patience_ms_max = min(patience_ms_max, 2 * self._renew_ms)
            self._patience_ms = max(min(2 * self._patience_ms, patience_ms_max), self._renew_ms)
        self._drop_call()
        self._step()

    # --- Steps.

    def _step(self) -> None:
        """Take the next step towards a life, or to keep it."""
        if self.broker_epoch >= 0:
            self._keep()
        elif fault := self._level_fault():
            if fault != self.obstacle:
                logger.error("broker %d does not live in the cluster: %s", self._broker_id, fault)
            self.obstacle = fault
            self._alarm.arm(self._renew_ms)
        elif not self._lease_id:
            self._make_room()
        else:
            self._put_key([Compare(self._key, "mod", 0)])

    def _level_fault(self) -> str:
        """Return why this broker may not register; "" if it may, or is registered.

        A level comes into force only while every registered broker knows it.
        """
        if self._is_registered():
            return ""
        return why_not_known(self._known.feature_levels(), self._registration.levels)

    def _is_stored(self) -> bool:
        # One that cannot be had was put by somebody else, perhaps without the lease: then it would
        # outlive this broker, and nobody would claim what it leads.
        is_sound = not self._known.fault(self._key)
        return is_sound and self._stored_phase == self._phase and self._is_registered()

    def _is_registered(self) -> bool:
        key, known = self._known.keys.broker(self._broker_id), self._known
        return known.get(key) == self._registration and not known.fault(key)

    def _keep(self) -> None:
        if self._has_put_failed or self._is_stored():
            self._call(self._etcd.begin_renew(self._lease_id))
        elif fault := self._level_fault():
            # Somebody has taken the registration away, and a level came into force that this
            # release does not know: it cannot read what the others write.
            lease_id = self._lease_id
            self._end(fault)
            self._call(self._etcd.begin_revoke(lease_id))
        else:
            self._put_key([Compare(self._key, "create", self.broker_epoch)])

    def _make_room(self) -> None:
        """Ask for a lease; a life of this broker before this one is ended first.

        The broker holds the lock of its directory: a life with the same directory is its own, from
        before a restart.  Another directory is another broker with this id.
        """
        other = self._known.get(self._key)
        if other is None or self._known.life_epoch(self._broker_id) == self._lost_epoch:
            self._call(self._etcd.begin_grant(self._ttl_ms))
            return
        assert isinstance(other, LifeRow)
        if other.directory_id == self._directory_id:
            self._call(self._etcd.begin_revoke(other.lease_id))
            return
        self.obstacle = why_taken(self._known, self._broker_id)
        self._alarm.arm(self._renew_ms)

    def _put_key(self, compares: list[Compare]) -> None:
        registration = self._known.keys.broker(self._broker_id)
        row = LifeRow(ROW_FORMAT, self._directory_id, self._lease_id, self._phase)
        operations: list[Operation] = [Put(self._key, encode_row(row), self._lease_id)]
        # Each life writes it: who decides that this broker may be unregistered is told of one that
        # began since, also if it is over again.
        if self.broker_epoch < 0 or not self._is_registered():
            revision = self._known.mod_revision(registration)
            features = self._known.keys.of_kind("features")
            in_force = self._known.newest_revision(features)
            compares = [
                *compares,
                Compare(registration, "mod", revision),
                # The registration rests on the levels in force: this release may not know a newer
                # level.
                Compare(features, "newest", in_force),
            ]
            operations.append(Put(registration, encode_row(self._registration)))
        self._stored_phase = self._phase
        self._call(self._etcd.begin_transaction(compares, operations))
        self._is_putting = True

    def _drop_call(self) -> None:
        """Give up a call whose answer did not come, or means nothing any more."""
        if self._call_id:
            call_id, self._call_id = self._call_id, 0
            self._etcd.cancel(call_id)
            self._forget_put()

    def _forget_put(self) -> None:
        """Have the key written once more if whether it was is not known: it is the same then."""
        if self._is_putting:
            self._stored_phase = ""
            self._has_put_failed = self.broker_epoch >= 0

    def _call(self, call_id: int) -> None:
        self._call_id = call_id
        self._is_putting = False
        self._sent_ms = self._turn.monotonic_ms()
        self._alarm.arm(self._patience_ms)

    # --- Answers.

    def on_answer(self, answer: EtcdAnswer) -> None:
        """Take the answer to a call of this life; the answers to other calls are passed over."""
        if answer.call_id == self._revoke_id:
            self._revoke_id = 0
            return
        if answer.call_id != self._call_id:
            return
        self._call_id = 0
        if self._turn.monotonic_ms() - self._sent_ms <= self._renew_ms // 2:
            self._patience_ms = self._renew_ms
        match answer:
            case LeaseGranted():
                self._lease_id = answer.lease_id
                self._renewed(answer.ttl_ms)
                self._step()
            case LeaseRenewed() if answer.ttl_ms > 0:
                self._renewed(answer.ttl_ms)
                self._alarm.arm(RETRY_MS if self._has_put_failed else self._renew_ms)
                self._has_put_failed = False
            case LeaseRenewed():
                self._end("etcd has ended the lease")
                self._step()
            case LeaseRevoked():
                # The watch tells when the key is gone.
                self._alarm.arm(RETRY_MS)
            case TransactionEnded():
                self._on_put(answer)
            case CallFailed():
                self._on_failed(answer)
            case _:
                raise AssertionError(f"{type(answer).__name__} answers no call of a life")

    def _renewed(self, ttl_ms: int) -> None:
        self.expires_ms = self._sent_ms + ttl_ms - _margin_ms(ttl_ms)

    def _on_put(self, answer: TransactionEnded) -> None:
        if not answer.is_done:
            self._forget_put()
            if self.broker_epoch >= 0 and self._known.life_epoch(self._broker_id) in (
                NO_EPOCH,
                self.broker_epoch,
            ):
                # The registration was changed by others, or the key is gone: the watch will tell.
                self._alarm.arm(RETRY_MS)
                return
            if self.broker_epoch >= 0:
                self._end("the key of this life is gone")
            # Else the key is there: from an unknown deed of this lease, or of another broker.
            self._abandon_lease()
        elif self.broker_epoch < 0:
            self.broker_epoch = answer.revision
            self.has_lived = True
            self.obstacle = ""
            self._on_change()
            self._alarm.arm(self._renew_ms)
        else:
            self._alarm.arm(self._renew_ms)

    def _abandon_lease(self) -> None:
        """Begin with a new lease; the watch tells what is in the way."""
        self._lease_id = 0
        self._alarm.arm(RETRY_MS)

    def _on_failed(self, answer: CallFailed) -> None:
        self._forget_put()
        if self.broker_epoch < 0:
            self.obstacle = answer.reason
            self._lease_id = 0
        self._alarm.arm(RETRY_MS)

    def _end(self, reason: str) -> None:
        """Count the life as over; the next one begins with a new lease."""
        self._lost_epoch = self.broker_epoch
        self.broker_epoch = NO_EPOCH
        self.obstacle = reason
        self._lease_id = 0
        self._stored_phase = ""
        self._has_put_failed = False
        self._phase = STARTING
        self._on_change()


def _margin_ms(ttl_ms: int) -> int:
    return max(MARGIN_MS_MIN, ttl_ms // MARGIN_PART)


def why_taken(known: KnownRows, broker_id: int) -> str:
    """Return why a broker cannot live that has not the directory of the life under its id."""
    fault = known.fault(known.keys.life(broker_id))
    if fault:
        return (
            f"whether another broker {broker_id} lives is not known, {fault}: if none runs, remove "
            "that row"
        )
    return (
        f"broker {broker_id} lives in the cluster already, with another log directory: give this "
        "one another node.id, or stop the other one"
    )


def _tell_nobody() -> None:
    """Tell nobody: no one has asked to hear of lives yet."""
