"""Member of a cluster: a life in etcd, and claims of the partitions that this broker may lead.

A life begins, its broker claims what it may lead, and only then it serves.  A life that is lost is
followed by another one, without a restart.
"""

from __future__ import annotations

import logging
from functools import partial

from tarry.base.doors import Event
from tarry.base.etcd import EtcdEvent
from tarry.broker.membership import ClusterMembership
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.hosting import Hosting
from tarry.cluster.change import Change
from tarry.cluster.claims import ClaimPartitions
from tarry.cluster.etcd_store import EtcdStore
from tarry.cluster.life import SERVING, Life
from tarry.cluster.records import LifeChanged, LifeEnded, MetadataRecord

logger = logging.getLogger("tarry.cluster")


class ClusterMember(ClusterMembership):
    """The lives of this broker, the store that they share with others, and its claims."""

    def __init__(
        self,
        broker_id: int,
        store: EtcdStore,
        life: Life,
        changes: MetadataChanges,
        hosting: Hosting,
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._life = life
        self._hosting = hosting
        # The last life of this broker, until the watch tells that it is over: a life that this
        # broker counts as over may still be one that nobody has buried.
        self._own_epoch = -1
        self._seen_epoch = -1
        hosting.own_epoch = self._last_epoch
        # The life in which everything was claimed, and the claim that is under way.
        self._claimed_epoch = -1
        self._claim: ClaimPartitions | None = None
        changes.also = self
        life.on_change = self._on_life
        life.begin()

    @property
    def is_serving(self) -> bool:
        broker = self._store.state.brokers.get(self._broker_id)
        if broker is None or broker.phase != SERVING:
            return False
        return broker.broker_epoch == self._life.broker_epoch

    @property
    def obstacle(self) -> str:
        """Reason why this broker does not serve yet; "" if only its claims are missing."""
        return self._life.obstacle

    def on_event(self, event: Event) -> None:
        assert isinstance(event, EtcdEvent)
        if not self._life.on_answer(event.answer):
            self._store.on_answer(event.answer)

    def leave(self) -> None:
        self._life.leave()

    # -- lives

    def _on_life(self) -> None:
        if self._life.broker_epoch >= 0:
            self._own_epoch = self._life.broker_epoch
            self._hosting.on_own_life()
            logger.info("broker %d lives in epoch %d", self._broker_id, self._life.broker_epoch)
            self._maybe_claim()
        else:
            logger.warning(
                "broker %d counts as dead to the cluster (%s): it begins another life",
                self._broker_id,
                self._life.obstacle,
            )

    def _last_epoch(self) -> int:
        return self._own_epoch

    def _follow_own_life(self, record: MetadataRecord) -> None:
        """Lead nothing any more once the watch tells that this life is over."""
        if isinstance(record, LifeChanged) and record.broker_id == self._broker_id:
            self._seen_epoch = record.broker_epoch
            return
        is_own_end = isinstance(record, LifeEnded) and record.broker_id == self._broker_id
        # The end may be that of the life before, which is told late.
        if is_own_end and self._seen_epoch == self._own_epoch >= 0:
            self._own_epoch = -1
            self._hosting.on_own_life()

    # -- claims

    def _maybe_claim(self) -> None:
        """Claim once the watch has brought this life."""
        epoch = self._life.broker_epoch
        if self._claim is not None or epoch < 0 or self._claimed_epoch == epoch:
            return
        if self._store.known.life_epoch(self._broker_id) == epoch:
            self._claim = ClaimPartitions(self._store.known, self._broker_id, epoch)
            self._store.change(self._claim)

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Claim more, or serve; and look again when a leader's life is over."""
        claim = self._claim
        if change is not None and change is claim:
            self._claim = None
            if claim.is_last and claim.broker_epoch == self._life.broker_epoch:
                self._claimed_epoch = claim.broker_epoch
                self._life.set_phase(SERVING)
        for record in records:
            self._follow_own_life(record)
            is_others = isinstance(record, LifeEnded) and record.broker_id != self._broker_id
            if is_others and self._claimed_epoch == self._life.broker_epoch:
                self._claimed_epoch = -1
            elif isinstance(record, LifeChanged) and record.phase == SERVING:
                logger.info("broker %d serves", record.broker_id)
        self._maybe_claim()

    def on_refused(self, change: Change) -> None:
        """Claim again later: etcd did not answer."""
        if change is self._claim:
            self._claim = None
            self._hosting.retries.later(partial(self._maybe_claim))
