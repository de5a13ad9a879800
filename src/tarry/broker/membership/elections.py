"""Elections that a broker makes by the clock: at regular times it looks whether one is due.

It hands over partitions that it leads and cannot write or read, and leaves the isr of such
partitions that it follows.  It takes back partitions whose preferred leader it is.  If no member of
an isr has lived for a while, and the topic allows it, it takes over although it may lack records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.membership.doubts import UnwholeLogs
from tarry.broker.membership.series import Series
from tarry.cluster.decisions.hand_over import HandOver, PreferLeaders
from tarry.cluster.decisions.leaves import LeavePartitions
from tarry.cluster.decisions.row_changes import Place, RowsChange, Spells
from tarry.cluster.decisions.unclean import ElectUncleanly
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.store.change import Change
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

LOOK_MS: Final = 500
# Interval of looks at all topics for unclean elections.
UNCLEAN_LOOK_MS: Final = 2_500
# Interval of looks at all replicas here for damage.
DAMAGE_LOOK_MS: Final = 1_000
# A log that the disk has refused to write for so long is handed over to another broker.
REFUSED_MS: Final = 1_000


# Text in the log for each kind of change.
_WHAT: Final[dict[type[RowsChange], str]] = {
    HandOver: "cannot be written here, or are damaged: other brokers lead them from now on",
    LeavePartitions: "cannot be written here, or are damaged: this broker leaves their replicas in "
    "sync",
    ElectUncleanly: "have nobody in sync that lives and whose log is whole: a replica leads them "
    "that may lack records (unclean.leader.election.enable)",
    PreferLeaders: "return to this broker, their preferred leader",
}


class Elections:
    """Elections by this broker; one change is under way at a time."""

    def __init__(
        self,
        settings: Settings,
        store: EtcdStore,
        flushes: Flushes,
        *,
        unwhole: UnwholeLogs,
        unmade: Callable[[], list[Place]],
        turn: Turn,
        timer: TimingWheel,
    ) -> None:
        self._settings = settings
        self._broker_id = settings.node_id
        self._store = store
        self._flushes = flushes
        self._unwhole = unwhole
        # Function that returns the partitions whose logs the disk has refused to create.
        self._unmade = unmade
        self._turn = turn
        self._alarm = Alarm(timer, turn, self._look)
        self._own_epoch: Callable[[], int] | None = None
        self._series: Series[RowsChange] = Series(store)
        self._refused = Spells(turn)
        self._orphans = Spells(turn)
        self._unclean_ms = turn.now_ms + UNCLEAN_LOOK_MS
        self._damage_ms = turn.now_ms + DAMAGE_LOOK_MS
        self._preferred_ms = turn.now_ms + self._preferred_interval_ms

    @property
    def _preferred_interval_ms(self) -> int:
        return self._settings.leader_imbalance_check_interval_seconds * 1_000

    def begin(self, own_epoch: Callable[[], int]) -> None:
        """Look at regular times from now on; `own_epoch` returns the life in which this broker
        may lead.
        """
        self._own_epoch = own_epoch
        self._alarm.arm(LOOK_MS)

    def end(self) -> None:
        """Stop looking."""
        self._own_epoch = None
        self._alarm.cancel()

    def _look(self) -> None:
        """Look once, and set the time of the next look."""
        self._alarm.arm(LOOK_MS)
        if self._own_epoch is None or self._series.current is not None:
            return
        epoch = self._own_epoch()
        if epoch < 0:
            return
        refused = self._refused_places()
        damaged = self._damaged_places()
        for kind in (
            partial(self._give_up_leads, refused),
            partial(self._give_up_leads, damaged),
            partial(self._leave, refused),
            partial(self._leave_damaged, damaged),
            self._orphaned,
            self._preferred,
        ):
            change = kind(epoch)
            # Most looks find nothing, and need no change in the store.
            if change is not None and (records := change.decide(self._store.view)):
                level = logging.INFO if isinstance(change, PreferLeaders) else logging.WARNING
                logger.log(level, "%d partitions or more %s", len(records), _WHAT[type(change)])
                self._series.begin(change)
                return

    def on_ended(self, change: Change | None) -> None:
        """Continue if the change that ended is one of these elections."""
        if self._series.end(change) is not None and self._own_epoch is not None:
            self._series.go_on()

    def _refused_places(self) -> list[Place]:
        """Return the partitions whose logs the disk has refused to write or create for too long,
        and whose isr has other members.
        """
        refused = self._flushes.refused
        for owner in list(refused):
            if not isinstance(owner, ReplicatedLog) or owner.is_closed:
                del refused[owner]
        places = [one.key[:2] for one in refused if isinstance(one, ReplicatedLog)]
        # The look is taken even if nothing is refused: a later refusal must not continue an earlier
        # one.
        self._refused.begin()
        found = [
            place
            for place in (*places, *self._unmade())
            if self._refused.lasted_ms(place) >= REFUSED_MS
        ]
        self._refused.end(is_whole=True)
        return [place for place in found if len(self._isr(place)) > 1]

    def _isr(self, place: Place) -> list[int]:
        topic = self._store.state.topic_by_id(place[0])
        if topic is None or place[1] >= len(topic.partitions):
            return []
        return topic.partitions[place[1]].isr

    def _damaged_places(self) -> list[Place]:
        """Return the partitions whose log is damaged here and whose isr has other members."""
        if self._turn.now_ms < self._damage_ms:
            return []
        self._damage_ms = self._turn.now_ms + DAMAGE_LOOK_MS
        return self._unwhole.damaged_in_sync()

    def _give_up_leads(self, places: list[Place], epoch: int) -> RowsChange | None:
        """Hand over the partitions that this broker leads and cannot write, and leave their isr."""
        if not places:
            return None
        known, settings = self._store.known, self._settings
        return HandOver(known, self._broker_id, epoch, places=places, settings=settings)

    def _leave(self, places: list[Place], epoch: int) -> RowsChange | None:
        """Leave the isr of partitions that this broker follows and cannot write."""
        if not places:
            return None
        known, settings = self._store.known, self._settings
        return LeavePartitions(known, self._broker_id, epoch, dict.fromkeys(places), settings)

    def _leave_damaged(self, places: list[Place], epoch: int) -> RowsChange | None:
        """Leave the isr of partitions whose log is damaged here, even below the floor: the damaged
        log counts as a copy in no case.
        """
        if not places:
            return None
        return LeavePartitions(self._store.known, self._broker_id, epoch, dict.fromkeys(places))

    def _orphaned(self, epoch: int) -> RowsChange | None:
        """Elect uncleanly if a topic allows it and no member of the isr lives."""
        if self._turn.now_ms < self._unclean_ms:
            return None
        self._unclean_ms = self._turn.now_ms + UNCLEAN_LOOK_MS
        return ElectUncleanly(
            self._store.known,
            self._broker_id,
            epoch,
            self._settings,
            self._orphans,
            self._unwhole,
        )

    def _preferred(self, epoch: int) -> RowsChange | None:
        """Take back the partitions whose first replica this broker is."""
        if self._turn.now_ms < self._preferred_ms:
            return None
        self._preferred_ms = self._turn.now_ms + self._preferred_interval_ms
        settings = self._settings
        if not settings.auto_leader_rebalance_enable or self._flushes.refused or self._unmade():
            return None
        percentage = settings.leader_imbalance_per_broker_percentage
        return PreferLeaders(self._store.known, self._broker_id, percentage)
