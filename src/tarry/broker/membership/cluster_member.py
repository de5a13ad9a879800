"""Member of a cluster: a life in etcd, and claims of the partitions that this broker may lead.

When a life begins, the broker leaves the isr of partitions whose logs here are not whole, then
claims what it may lead, and only then serves.  A lost life is followed by another one without a
restart.  Until the new life has claimed the partitions of the lost one, the broker keeps them for a
moment as a leader whose lease is over (`RETURN_MS`).  Before it stops, a broker hands over what it
leads.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.doors import Event
from tarry.base.etcd import EtcdEvent
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.membership.doubts import UnwholeLogs
from tarry.broker.membership.elections import Elections
from tarry.broker.membership.membership import ClusterMembership
from tarry.broker.membership.series import Series
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.hosting import Hosting
from tarry.broker.shutdown import Shutdown
from tarry.broker.topics import Topics
from tarry.cluster.decisions.claims import ClaimPartitions
from tarry.cluster.decisions.hand_over import HandOver
from tarry.cluster.decisions.leaves import LeavePartitions
from tarry.cluster.decisions.row_changes import Place, Spells
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.lives.last_life import Doubts
from tarry.cluster.lives.life import Life
from tarry.cluster.lives.returning import RETURN_MS, Returning
from tarry.cluster.state.records import (
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
)
from tarry.cluster.state.state import LEAVING, SERVING, is_led, stands_still
from tarry.cluster.store.change import Change
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

# Longest time for which a stopping broker hands over.  The whole stop takes less than ten seconds,
# after which a container's runtime kills the process.
HAND_OVER_MS_MAX: Final = 4_000
# Longest time for which the broker waits until etcd knows that its life is over, counted from its
# leave, and longest time counted from the request to stop.  Later a container's runtime may kill
# the process before its logs are marked clean.
LEAVE_MS_MAX: Final = 1_000
LEFT_MS_MAX: Final = 4_400
# Pause before a step is tried again that etcd refused or did not answer.
RETRY_MS: Final = 1_000

_Step = LeavePartitions | ClaimPartitions


class ClusterMember(ClusterMembership):
    """The lives of this broker, the store that it shares with other brokers, and its claims.

    `doubts` are the partitions whose logs here were not whole at the start; `unwhole` also has
    those that were found damaged since.
    """

    def __init__(
        self,
        settings: Settings,
        store: EtcdStore,
        life: Life,
        changes: MetadataChanges,
        hosting: Hosting,
        *,
        turn: Turn,
        timer: TimingWheel,
        topics: Topics,
        shutdown: Shutdown,
        elections: Elections,
        doubts: Doubts,
        unwhole: UnwholeLogs,
    ) -> None:
        self._settings = settings
        self._broker_id = settings.node_id
        self._store = store
        self._life = life
        self._hosting = hosting
        self._turn = turn
        self._topics = topics
        self._shutdown = shutdown
        self._elections = elections
        self._doubts = doubts
        self._unwhole = unwhole
        # Broker epochs of this broker's life, and of the life before it, which the next one
        # continues; -1 if there is none.
        self._own_epoch = -1
        self._ending_epoch = -1
        self._ending_alarm = Alarm(timer, turn, self._end_ending)
        self._returning = Returning(turn, life)
        # Epoch of the life in which this broker has left its doubtful partitions, and of the life
        # in which it has claimed everything; true if there may be more to claim since the last
        # claim began.
        self._left_epoch = -1
        self._claimed_epoch = -1
        self._has_vacancies = False
        # Leave or claim under way, with the rest that a transaction had no room for.
        self._steps: Series[_Step] = Series(store)
        self._vacancies = Spells(turn)
        self._alarm = Alarm(timer, turn, self._look_again)
        # Hand-over before a stop.
        self._is_stopping = False
        self._hand_over: Series[HandOver] = Series(store)
        self._stop_alarm = Alarm(timer, turn, self._end_hand_over)
        self._asked_ms = turn.now_ms
        # True once the life is being ended; true once the broker waits for etcd no longer.
        self._is_leaving = False
        self._is_late = False
        self._leave_alarm = Alarm(timer, turn, self._end_leave)
        life.begin(self._on_life)
        elections.begin(self._last_epoch)

    @property
    def is_serving(self) -> bool:
        broker = self._store.state.brokers.get(self._broker_id)
        if broker is None or broker.phase != SERVING:
            return False
        return broker.broker_epoch == self._life.broker_epoch

    @property
    def own_epoch(self) -> int:
        return self._own_epoch

    @property
    def ending_epoch(self) -> int:
        return self._ending_epoch

    @property
    def is_alive(self) -> bool:
        return self._life.is_alive

    @property
    def has_lived(self) -> bool:
        return self._life.has_lived

    @property
    def obstacle(self) -> str:
        """Reason why this broker does not serve yet; "" if only its claims are missing."""
        return self._life.obstacle

    @property
    def doubts(self) -> Doubts:
        """The partitions in whose isr this broker is although its log there is not whole."""
        return self._doubts

    def on_event(self, event: Event) -> None:
        assert isinstance(event, EtcdEvent)
        if not self._store.on_answer(event.answer):
            self._life.on_answer(event.answer)

    def leave(self) -> bool:
        self._alarm.cancel()
        self._stop_alarm.cancel()
        self._ending_alarm.cancel()
        self._elections.end()
        if not self._is_leaving:
            self._is_leaving = True
            self._life.leave()
            left_ms = LEFT_MS_MAX - (self._turn.now_ms - self._asked_ms)
            self._leave_alarm.arm(min(max(left_ms, 1), LEAVE_MS_MAX))
        return self._is_late or self._life.has_left

    def on_last_event(self, event: Event) -> None:
        assert isinstance(event, EtcdEvent)
        self._life.on_answer(event.answer)

    def _end_leave(self) -> None:
        self._is_late = True

    # -- lives

    def _on_life(self) -> None:
        if self._life.broker_epoch >= 0:
            self._own_epoch = self._life.broker_epoch
            logger.info("broker %d lives in epoch %d", self._broker_id, self._life.broker_epoch)
            self._go_on()
        else:
            self._returning.on_own_end()
            self._ending_epoch, self._own_epoch = self._own_epoch, -1
            self._hosting.on_own_life()
            self._ending_alarm.arm(RETURN_MS)
            logger.warning(
                "broker %d counts as dead to the cluster (%s): it begins another life",
                self._broker_id,
                self._life.obstacle,
            )

    def _last_epoch(self) -> int:
        return self._own_epoch

    def _end_ending(self) -> None:
        """Stop leading the partitions of the life before."""
        self._ending_epoch = -1
        self._hosting.on_own_life()

    def is_expected(self, broker_id: int) -> bool:
        return self._returning.is_expected(broker_id)

    def _follow_own_life(self) -> None:
        """Begin another life if the watch has shown that this one is over."""
        seen = self._store.known.life_epoch(self._broker_id)
        if self._store.version >= self._life.broker_epoch >= 0 and seen != self._life.broker_epoch:
            self._life.on_key_gone()
        # The rows may be older than the present life; if they lack the earlier one, that is over.
        if self._store.version >= self._own_epoch >= 0 and seen != self._own_epoch:
            self._own_epoch = -1
            self._hosting.on_own_life()

    # -- leaves and claims

    def _go_on(self) -> None:
        """Leave partitions, then claim partitions, once the watch has brought the row of this
        life.
        """
        epoch = self._life.broker_epoch
        if self._steps.current is not None or epoch < 0 or self._is_stopping:
            return
        known = self._store.known
        if known.life_epoch(self._broker_id) != epoch:
            return
        rest = self._steps.rest
        if rest is not None and rest.broker_epoch == epoch:
            self._steps.go_on()
        elif self._left_epoch != epoch:
            self._steps.begin(LeavePartitions(known, self._broker_id, epoch, self._doubts))
        elif self._claimed_epoch != epoch or self._has_vacancies:
            self._has_vacancies = False
            self._steps.begin(
                ClaimPartitions(
                    known,
                    self._broker_id,
                    epoch,
                    self._settings,
                    self._vacancies,
                    self._unwhole,
                    returning=self._returning,
                )
            )

    def _look_again(self) -> None:
        self._has_vacancies = True
        self._go_on()

    def _end_step(self, step: _Step) -> None:
        if step.broker_epoch != self._life.broker_epoch or not step.is_last:
            return
        if isinstance(step, LeavePartitions):
            self._left_epoch = step.broker_epoch
            self._settle_doubts()
            # No partition depends on the disk before any more; where this broker is the last
            # replica, the partition is still a doubt.
            self._life.register_disk()
            return
        self._claimed_epoch = step.broker_epoch
        if step.due_in_ms is not None:
            self._alarm.arm(step.due_in_ms)
        if not self._is_stopping:
            self._life.set_phase(SERVING)

    def _settle_doubts(self) -> None:
        """Settle the doubts of partitions whose isr lacks this broker: their leaders say what to
        copy.
        """
        if not len(self._doubts):
            return
        topics = self._store.state.topics_by_id
        settled: list[Place] = []
        for topic_id, index in self._doubts.places():
            topic = topics.get(topic_id)
            row = None if topic is None else topic.partitions[index]
            if topic is None or row is None:
                settled.append((topic_id, index))
            elif stands_still(row):
                # The partition is left once its row is mended.
                continue
            elif self._broker_id not in row.isr:
                settled.append((topic_id, index))
            else:
                logger.error(
                    "%s-%d: this broker is the last replica in sync, and its log is not whole; the "
                    "partition stays offline until a replica is elected that may lack records "
                    "(tarry topics elect --unclean)",
                    topic.name,
                    index,
                )
        self._doubts.settle(settled)

    def _follow_row(self, topic_id: bytes, index: int, row: PartitionRow) -> None:
        """React to a partition's row: note a partition without leader to claim, settle a doubt."""
        own_id = self._broker_id
        place = (topic_id, index)
        if place in self._doubts and not stands_still(row):
            was_elected = row.leader_id == own_id and row.unclean_epoch == row.leader_epoch
            if own_id not in row.isr or was_elected:
                self._doubts.settle([place])
            elif len(row.isr) > 1:
                # The partition stood still when this broker left the others, and its row was mended
                # since.
                self._left_epoch = -1
        if own_id in row.isr and not is_led(self._store.state, row):
            self._has_vacancies = True

    # -- reports of the store

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Continue with claims, or serve; look for claims when a leader's life is over."""
        if (step := self._steps.end(change)) is not None:
            self._end_step(step)
        for record in records:
            match record:
                case LifeEnded():
                    self._has_vacancies = True
                    self._returning.on_ended(record.broker_id)
                case LifeChanged() if record.phase == SERVING:
                    self._returning.on_serving(record.broker_id)
                    logger.info("broker %d serves", record.broker_id)
                case PartitionChanged():
                    self._follow_row(record.topic_id, record.index, record.row)
                case TopicCreated() | PartitionsAdded():
                    for row in record.partitions:
                        self._follow_row(record.topic_id, -1, row)
                case _:
                    pass
        if any(isinstance(record, LifeEnded | LifeChanged) for record in records):
            self._follow_own_life()
        if self._hand_over.end(change) is not None:
            self._go_on_handing_over()
        self._elections.on_ended(change)
        self._go_on()

    def on_refused(self, change: Change) -> None:
        """Try again later, because etcd did not answer."""
        if self._steps.end(change) is not None:
            self._alarm.arm(RETRY_MS)
        elif self._hand_over.end(change) is not None:
            self._end_hand_over()
        self._elections.on_ended(change)

    # -- the end

    def stop(self) -> None:
        """Hand over what this broker leads, then stop; at the second call stop at once."""
        if not self._is_stopping:
            self._asked_ms = self._turn.now_ms
        if self._is_stopping or self._life.broker_epoch < 0:
            self._end_hand_over()
            return
        self._is_stopping = True
        self._elections.end()
        self._alarm.cancel()
        self._life.set_phase(LEAVING)
        self._stop_alarm.arm(HAND_OVER_MS_MAX)
        self._begin_hand_over()

    def _begin_hand_over(self) -> None:
        """Hand over what this broker leads; no further look is taken before all of it is handed
        over.
        """
        change = HandOver(
            self._store.known,
            self._broker_id,
            self._life.broker_epoch,
            settings=self._settings,
        )
        if change.decide(self._store.view):
            self._hand_over.begin(change)
        else:
            # No other broker can take anything over.
            self._end_hand_over()

    def _go_on_handing_over(self) -> None:
        if self._shutdown.is_begun or self._life.broker_epoch < 0:
            self._end_hand_over()
        elif not self._hand_over.go_on():
            self._begin_hand_over()

    def _end_hand_over(self) -> None:
        """Stop now; if nothing is left here, other brokers learn at once that this one is gone."""
        self._is_stopping = True
        self._stop_alarm.cancel()
        self._hand_over.drop()
        if self._shutdown.is_begun:
            return
        if not any(hosted.partitions for hosted in self._topics.all()):
            self.leave()
        self._shutdown.begin()
