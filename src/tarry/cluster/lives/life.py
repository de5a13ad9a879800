"""The life of a broker in a cluster: a key in etcd, under a lease that the broker renews.

A life begins when etcd makes the key.  The revision of etcd at that moment is the *broker epoch* of
the life.  The life ends when etcd ends the lease.

Only etcd knows whether a lease has ended.  The broker stops all work that needs a life at
`expires_ms`, which is earlier than etcd can end the lease: later, other brokers may have taken over
its partitions.  If etcd was unreachable and has kept the lease, the same life goes on.

The broker's event loop renews the lease, so a broker whose loop hangs loses its life.
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

# Pause before a step is tried again after etcd has refused it or has not answered.
RETRY_MS: Final = 250
# The broker stops before its lease ends, by a fifth of the time to live and at least one second: an
# answer of etcd takes time, and the clocks of broker and etcd run at different speeds.
MARGIN_MS_MIN: Final = 1_000
MARGIN_PART: Final = 5

NO_EPOCH: Final = -1


class Life:
    """The lives of this broker, one after the other.

    `begin` asks etcd for the first life.  `on_answer` takes etcd's answers.  The row `registration`
    is written together with the first key.  `directory_id` is the id of the disk that the broker
    runs on; it is given only if another disk is registered.
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
        # Id of the disk on which this broker runs, whether that disk is registered or not.
        self._directory_id = directory_id or registration.directory_id
        self._turn = turn
        self._ttl_ms = ttl_ms
        self._renew_ms = renew_ms
        self._on_change: Callable[[], None] = _tell_nobody
        self._key = known.keys.life(broker_id)
        self._phase = STARTING
        # Phase of the broker as the key in etcd says it.
        self._stored_phase = ""
        # True if the key could not be written.  The lease is renewed before the next try.
        self._has_put_failed = False
        # True while the call under way writes the key.
        self._is_putting = False
        self._lease_id = 0
        # Revision in which this life's key was made.
        self.broker_epoch = NO_EPOCH
        # Broker epoch of the life that was lost last.  Its key is gone from etcd; the watch may not
        # have told this broker yet.
        self._lost_epoch = NO_EPOCH
        self.has_lived = False
        # Time of the monotonic clock from which on this broker does nothing in this life.
        self.expires_ms = 0
        # Sentence that tells a user why this broker has no life; "" if it has one.
        self.obstacle = "the lease was not granted yet"
        self._call_id = 0
        # Call that revokes the lease when the broker stops; 0 once etcd has answered.
        self._revoke_id = 0
        self._sent_ms = 0
        # How long this broker waits for an answer of etcd.  After an answer that did not come it
        # waits longer, because etcd may be slow.
        self._patience_ms = renew_ms
        self._alarm = Alarm(timer, turn, self.on_time)

    @property
    def is_alive(self) -> bool:
        """True while this broker may do what needs a life."""
        return self.left_ms > 0

    @property
    def left_ms(self) -> int:
        """Time for which this broker may still do what needs a life; 0 or less if it may not."""
        return self.expires_ms - self._turn.monotonic_ms() if self.broker_epoch >= 0 else 0

    def begin(self, on_change: Callable[[], None]) -> None:
        """Begin a life as soon as etcd allows; `on_change` is called when it has begun or ended."""
        self._on_change = on_change
        self._step()

    def set_phase(self, phase: str) -> None:
        """Write this phase into the key as soon as possible, for the other brokers to see."""
        self._phase = phase
        if self.broker_epoch >= 0 and not self._call_id:
            self._step()

    def register_disk(self) -> None:
        """Register the disk of this broker as soon as possible.

        Call it when no partition depends any more on what the disk before it holds.
        """
        self._registration = replace(self._registration, directory_id=self._directory_id)
        if self.broker_epoch >= 0 and not self._call_id and not self._is_stored():
            self._step()

    def on_key_gone(self) -> None:
        """Begin another life, because the watch has told that the key of this life is gone."""
        if self.broker_epoch >= 0:
            self._drop_call()
            self._end("the key of this life is gone")
            self._step()

    def leave(self) -> None:
        """End this life, because the broker stops.  Other brokers need not wait for its lease."""
        self._alarm.cancel()
        if self._lease_id:
            self._revoke_id = self._etcd.begin_revoke(self._lease_id)
            self._lease_id = 0
        self.broker_epoch = NO_EPOCH
        # An answer that comes later is ignored.
        self._call_id = 0

    @property
    def has_left(self) -> bool:
        """True once etcd has answered that the lease is revoked, or the call has failed.

        Wait for it before the link to etcd is closed: etcd may drop a request whose link ends.
        """
        return not self._revoke_id

    def on_time(self) -> None:
        """Take the next step: its time has come, or an answer has not come in time."""
        if self._call_id:
            patience_ms_max = self._ttl_ms - _margin_ms(self._ttl_ms)
            if self.broker_epoch >= 0:
                # The lease runs meanwhile, so another member of etcd is asked soon.
                patience_ms_max = min(patience_ms_max, 2 * self._renew_ms)
            self._patience_ms = max(min(2 * self._patience_ms, patience_ms_max), self._renew_ms)
        self._drop_call()
        self._step()

    # --- Steps.

    def _step(self) -> None:
        """Take the next step to get a life, or to keep the one there is."""
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

        etcd puts a feature level in force only while every registered broker knows that level.
        """
        if self._is_registered():
            return ""
        return why_not_known(self._known.feature_levels(), self._registration.levels)

    def _is_stored(self) -> bool:
        # A damaged key was written by somebody else, perhaps without the lease.  Such a key would
        # stay when this broker is gone, and nobody would claim the partitions that it led.
        is_sound = not self._known.fault(self._key)
        return is_sound and self._stored_phase == self._phase and self._is_registered()

    def _is_registered(self) -> bool:
        key, known = self._known.keys.broker(self._broker_id), self._known
        return known.get(key) == self._registration and not known.fault(key)

    def _keep(self) -> None:
        if self._has_put_failed or self._is_stored():
            self._call(self._etcd.begin_renew(self._lease_id))
        elif fault := self._level_fault():
            # Somebody has removed the registration, and then a feature level came into force that
            # this release does not know.  It cannot read what the other brokers write.
            lease_id = self._lease_id
            self._end(fault)
            self._call(self._etcd.begin_revoke(lease_id))
        else:
            self._put_key([Compare(self._key, "create", self.broker_epoch)])

    def _make_room(self) -> None:
        """Ask for a lease.  If an earlier life of this broker is still in etcd, end that one first.

        This broker holds the lock of its log directory.  So a life with the same directory is its
        own, from before a restart.  A life with another directory is another broker's that was
        given the same id.
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
        # Each life writes the registration.  So a broker that decides to unregister this one sees
        # by its revision that a life has begun since, even if that life is over.
        if self.broker_epoch < 0 or not self._is_registered():
            revision = self._known.mod_revision(registration)
            features = self._known.keys.of_kind("features")
            in_force = self._known.newest_revision(features)
            compares = [
                *compares,
                Compare(registration, "mod", revision),
                # This broker may register only if it knows each feature level in force, and these
                # may have changed since it looked.
                Compare(features, "newest", in_force),
            ]
            operations.append(Put(registration, encode_row(self._registration)))
        self._stored_phase = self._phase
        self._call(self._etcd.begin_transaction(compares, operations))
        self._is_putting = True

    def _drop_call(self) -> None:
        """Give up the call under way: its answer did not come in time, or no longer matters."""
        if self._call_id:
            call_id, self._call_id = self._call_id, 0
            self._etcd.cancel(call_id)
            self._forget_put()

    def _forget_put(self) -> None:
        """Write the key again if nobody knows whether etcd has written it.

        A second write of the same key does no harm.
        """
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
        """Take the answer to the call under way; ignore answers to other calls."""
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
                # The lease of an earlier life: the watch will tell that its key is gone.
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
                # Somebody has changed the registration, or the key is gone.  The watch will tell
                # which of the two.
                self._alarm.arm(RETRY_MS)
                return
            if self.broker_epoch >= 0:
                self._end("the key of this life is gone")
            # Without a life the refusal means that the key exists: this lease has written it in a
            # call whose answer was lost, or another broker has written it.
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
        """Ask for a new lease after a pause; by then the watch has told what is in the way."""
        self._lease_id = 0
        self._alarm.arm(RETRY_MS)

    def _on_failed(self, answer: CallFailed) -> None:
        self._forget_put()
        if self.broker_epoch < 0:
            self.obstacle = answer.reason
            self._lease_id = 0
        self._alarm.arm(RETRY_MS)

    def _end(self, reason: str) -> None:
        """Count the life as over.  The next life begins with a new lease."""
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
    """Return a sentence for a broker whose id is taken by a life with another directory."""
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
    """Do nothing, before `begin` has set the function to call."""
