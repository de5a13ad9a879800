"""Elections that a broker makes by the clock: it looks at regular times whether one is due.

It hands over what it leads and cannot write or read, and leaves the isr where it follows so;
it takes back what it is the preferred leader of; and where the topic allows it and nobody in sync
has lived for a while it takes over though it may lack records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.metadata.doubts import UnwholeLogs
from tarry.cluster.change import Change
from tarry.cluster.etcd_store import EtcdStore
from tarry.cluster.hand_over import HandOver, PreferLeaders
from tarry.cluster.leaves import LeavePartitions
from tarry.cluster.row_changes import RowsChange, Spells
from tarry.cluster.unclean import ElectUncleanly
from tarry.partition.state import Partition
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

LOOK_MS: Final = 500
# All topics are looked at for unclean elections only so often.
UNCLEAN_LOOK_MS: Final = 2_500
# And all replicas here for damage.
DAMAGE_LOOK_MS: Final = 1_000
# A log that could not be written for so long is another broker's to lead.
REFUSED_MS: Final = 1_000


# What a change means, for the log.
_WHAT: Final[dict[type[RowsChange], str]] = {
    HandOver: "cannot be written here, or are damaged: other brokers lead them from now on",
    LeavePartitions: "cannot be written here, or are damaged: this broker leaves their replicas in "
    "sync",
    ElectUncleanly: "have nobody in sync that lives and whose log is whole: a replica leads them "
    "that may lack records (unclean.leader.election.enable)",
    PreferLeaders: "return to this broker, their preferred leader",
}


class Elections(TimerEntry):
    """Elections by this broker; one change is under way at a time."""

    def __init__(
        self,
        settings: Settings,
        store: EtcdStore,
        flushes: Flushes,
        unwhole: UnwholeLogs,
        turn: Turn,
        timer: TimingWheel,
    ) -> None:
        super().__init__(0)
        self._settings = settings
        self._broker_id = settings.node_id
        self._store = store
        self._flushes = flushes
        self._unwhole = unwhole
        self._turn = turn
        self._timer = timer
        self._own_epoch: Callable[[], int] | None = None
        self._change: RowsChange | None = None
        self._refused = Spells(turn)
        self._orphans = Spells(turn)
        self._unclean_ms = turn.now_ms + UNCLEAN_LOOK_MS
        self._damage_ms = turn.now_ms + DAMAGE_LOOK_MS
        self._preferred_ms = turn.now_ms + self._preferred_interval_ms

    @property
    def _preferred_interval_ms(self) -> int:
        return self._settings.leader_imbalance_check_interval_seconds * 1_000

    def begin(self, own_epoch: Callable[[], int]) -> None:
        """Look from now on; `own_epoch` says in which life this broker may lead."""
        self._own_epoch = own_epoch
        self._arm()

    def end(self) -> None:
        """Look no more."""
        self._own_epoch = None
        self._timer.cancel(self)

    def expire(self) -> None:
        """Look once, and again after a while."""
        self._arm()
        if self._own_epoch is None or self._change is not None:
            return
        epoch = self._own_epoch()
        if epoch < 0:
            return
        refused = self._refused_logs()
        damaged = self._damaged_logs()
        for kind in (
            partial(self._give_up_leads, refused),
            partial(self._give_up_leads, damaged),
            partial(self._leave, refused),
            partial(self._leave_damaged, damaged),
            self._orphaned,
            self._preferred,
        ):
            change = kind(epoch)
            # Most looks find nothing, and the store need not hear of it.
            if change is not None and (records := change.decide(self._store.view)):
                level = logging.INFO if isinstance(change, PreferLeaders) else logging.WARNING
                logger.log(level, "%d partitions or more %s", len(records), _WHAT[type(change)])
                self._begin(change)
                return

    def on_ended(self, change: Change | None) -> None:
        """Go on when a change has ended, one of these or another."""
        ended = self._change
        if ended is None or change is not ended:
            return
        self._change = None
        if self._own_epoch is not None and not ended.refusal and not ended.is_last:
            self._begin(ended.rest())

    def _begin(self, change: RowsChange) -> None:
        self._change = change
        self._store.change(change)

    def _arm(self) -> None:
        self._timer.cancel(self)
        self.deadline_ms = self._turn.now_ms + LOOK_MS
        self._timer.add(self)

    def _refused_logs(self) -> list[Partition]:
        """Return what the disk has refused to write for too long, while others have it too."""
        refused = self._flushes.refused
        found: list[Partition] = []
        # Also where there is none: what is refused later is no sequel of what was.
        self._refused.begin()
        for owner in list(refused):
            if not isinstance(owner, Partition) or owner.is_closed:
                del refused[owner]
            elif self._refused.lasted_ms(owner) >= REFUSED_MS and len(owner.isr) > 1:
                found.append(owner)
        self._refused.end(is_whole=True)
        return found

    def _damaged_logs(self) -> list[Partition]:
        """Return what others in sync have whole, as far as they know, and this broker has not."""
        if self._turn.now_ms < self._damage_ms:
            return []
        self._damage_ms = self._turn.now_ms + DAMAGE_LOOK_MS
        return self._unwhole.damaged_in_sync()

    def _give_up_leads(self, refused: list[Partition], epoch: int) -> RowsChange | None:
        """Hand over what is led and cannot be written here; nobody waits for this broker then."""
        places = {(each.topic_id, each.index): None for each in refused if each.is_leader}
        if not places:
            return None
        known, settings = self._store.known, self._settings
        return HandOver(known, self._broker_id, epoch, places=places, settings=settings)

    def _leave(self, refused: list[Partition], epoch: int) -> RowsChange | None:
        """Leave the replicas in sync of what is followed and cannot be written here."""
        places = {(each.topic_id, each.index): None for each in refused if not each.is_leader}
        if not places:
            return None
        known, settings = self._store.known, self._settings
        return LeavePartitions(known, self._broker_id, epoch, places, settings)

    def _leave_damaged(self, damaged: list[Partition], epoch: int) -> RowsChange | None:
        """Leave the replicas in sync where the log here is damaged, below their floor too: what is
        missing counts on no disk.
        """
        places = {(each.topic_id, each.index): None for each in damaged if not each.is_leader}
        if not places:
            return None
        return LeavePartitions(self._store.known, self._broker_id, epoch, places)

    def _orphaned(self, epoch: int) -> RowsChange | None:
        """Elect where the topic allows it and nobody in sync lives."""
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
        """Take back what this broker is the first replica of."""
        if self._turn.now_ms < self._preferred_ms:
            return None
        self._preferred_ms = self._turn.now_ms + self._preferred_interval_ms
        settings = self._settings
        if not settings.auto_leader_rebalance_enable or self._flushes.refused:
            return None
        percentage = settings.leader_imbalance_per_broker_percentage
        return PreferLeaders(self._store.known, self._broker_id, percentage)
