"""Member of a cluster: a life in etcd, and claims of the partitions that this broker may lead.

A life begins.  Its broker leaves the replicas in sync where its logs are not whole, claims what it
may lead, and only then it serves.  A life that is lost is followed by another one, without a
restart: until that one has claimed what the other led, the broker goes on as a leader whose lease
is over, for a moment (`RETURN_MS`).  Before it stops a broker hands over what it leads.
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

# A broker that stops hands over for so long at most: with what a stop takes besides, it is over
# before a container's runtime gives up its patience of ten seconds.
HAND_OVER_MS_MAX: Final = 4_000
# So long it waits for etcd to know that its life is over, and no longer than so long after it was
# asked to stop: a container's runtime may kill it then, its logs not marked clean.
LEAVE_MS_MAX: Final = 1_000
LEFT_MS_MAX: Final = 4_400
# A step that etcd refused or did not answer is tried again.
RETRY_MS: Final = 1_000

_Step = LeavePartitions | ClaimPartitions


class ClusterMember(ClusterMembership):
    """The lives of this broker, the store that they share with other brokers, and its claims.

    `doubts`: the partitions whose logs here were not whole at the start; `unwhole` adds those that
    were found damaged since.
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
        # The life of this broker, and the one before, in whose place the next one goes on.
        self._own_epoch = -1
        self._ending_epoch = -1
        self._ending_alarm = Alarm(timer, turn, self._end_ending)
        self._returning = Returning(turn, life)
        # The life in which this broker has left what it doubts, and the one in which everything was
        # claimed; whether there may be more to claim since the last look began.
        self._left_epoch = -1
        self._claimed_epoch = -1
        self._has_vacancies = False
        # The leave or the claim that is under way, and what it had no room for.
        self._steps: Series[_Step] = Series(store)
        self._vacancies = Spells(turn)
        self._alarm = Alarm(timer, turn, self._look_again)
        # What is handed over before a stop.
        self._is_stopping = False
        self._hand_over: Series[HandOver] = Series(store)
        self._stop_alarm = Alarm(timer, turn, self._end_hand_over)
        self._asked_ms = turn.now_ms
        # The life is over, and etcd is not waited for any more.
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
        """The partitions whose logs here are not whole, while this broker counts as in sync."""
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
        """Lead nothing any more that was led in the life before."""
        self._ending_epoch = -1
        self._hosting.on_own_life()

    def is_expected(self, broker_id: int) -> bool:
        return self._returning.is_expected(broker_id)

    def _follow_own_life(self) -> None:
        """Begin another life once the watch tells that this one is over."""
        seen = self._store.known.life_epoch(self._broker_id)
        if self._store.version >= self._life.broker_epoch >= 0 and seen != self._life.broker_epoch:
            self._life.on_key_gone()
        # What is told late is of the life before.
        if self._store.version >= self._own_epoch >= 0 and seen != self._own_epoch:
            self._own_epoch = -1
            self._hosting.on_own_life()

    # -- leaves and claims

    def _go_on(self) -> None:
        """Leave, then claim, once the watch has brought this life."""
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
            # Nobody counts on the disk before; where this is the last replica, that is doubted.
            self._life.register_disk()
            return
        self._claimed_epoch = step.broker_epoch
        if step.due_in_ms is not None:
            self._alarm.arm(step.due_in_ms)
        if not self._is_stopping:
            self._life.set_phase(SERVING)

    def _settle_doubts(self) -> None:
        """Doubt no more where this broker is out of sync: its leader will tell what to copy."""
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
                # It is left when it is mended.
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
        """React to a partition's row: claim what nobody leads, settle what is doubted."""
        own_id = self._broker_id
        place = (topic_id, index)
        if place in self._doubts and not stands_still(row):
            was_elected = row.leader_id == own_id and row.unclean_epoch == row.leader_epoch
            if own_id not in row.isr or was_elected:
                self._doubts.settle([place])
            elif len(row.isr) > 1:
                # It stood still when this broker left all else, and was mended since.
                self._left_epoch = -1
        if own_id in row.isr and not is_led(self._store.state, row):
            self._has_vacancies = True

    # -- what the store tells

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Claim more, or serve; and look again when a leader's life is over."""
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
        """Go on later: etcd did not answer."""
        if self._steps.end(change) is not None:
            self._alarm.arm(RETRY_MS)
        elif self._hand_over.end(change) is not None:
            self._end_hand_over()
        self._elections.on_ended(change)

    # -- the end

    def stop(self) -> None:
        """Have nothing new come, hand over what is led, then stop."""
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
        """Hand over what is led; nothing is looked at again before all of it was."""
        change = HandOver(
            self._store.known,
            self._broker_id,
            self._life.broker_epoch,
            settings=self._settings,
        )
        if change.decide(self._store.view):
            self._hand_over.begin(change)
        else:
            # Nobody could take anything over.
            self._end_hand_over()

    def _go_on_handing_over(self) -> None:
        if self._shutdown.is_begun or self._life.broker_epoch < 0:
            self._end_hand_over()
        elif not self._hand_over.go_on():
            self._begin_hand_over()

    def _end_hand_over(self) -> None:
        """Stop now; who has handed over everything is gone for the others at once."""
        self._is_stopping = True
        self._stop_alarm.cancel()
        self._hand_over.drop()
        if self._shutdown.is_begun:
            return
        if not any(hosted.partitions for hosted in self._topics.all()):
            self.leave()
        self._shutdown.begin()
