"""Unregistration: a broker that will not come back leaves the cluster.

Kafka lets any broker be unregistered and removes it from every isr.  Here the broker must be dead
and have no replicas: a mistake must not give up the last copy of a partition, and a living broker
would only register again.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.cluster.decisions.replica_choice import Refusal
from tarry.cluster.decisions.row_changes import NO_LIFE
from tarry.cluster.etcd.transactions import ConditionalChange, Transaction
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    BrokerUnregistered,
    DeletionPending,
    MetadataRecord,
    TopicRemoved,
)
from tarry.cluster.state.state import ClusterState, is_alive, stands_still

# Number of deleted topics in one transaction of which the broker still had data.
_TOPICS_MAX: Final = 100


class Unregistration(ConditionalChange):
    """The end of a broker's registration.

    `is_last` is false if one transaction cannot hold everything: the same has to be asked for
    again.
    """

    def __init__(self, broker_id: int) -> None:
        super().__init__()
        self.broker_id = broker_id
        self.is_last = True
        self.error_code = errors.NONE
        self.message: str | None = None
        self._was_tried = False

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self.error_code, self.message = errors.NONE, None
        self.is_last = True
        if self._was_tried and self.broker_id not in view.broker_ids:
            # The outcome of an earlier decision was unknown, and now the broker is unregistered.
            return []
        try:
            _check(view, self.broker_id)
        except Refusal as refusal:
            self.fail(refusal.error_code, refusal.message)
            return []
        records = [*_strikes(view, self.broker_id)]
        if len(records) > _TOPICS_MAX:
            self.is_last = False
            return records[:_TOPICS_MAX]
        if view.configs_of_broker(self.broker_id):
            records.append(BrokerConfigChanged(broker_id=self.broker_id, configs={}))
        records.append(BrokerUnregistered(broker_id=self.broker_id))
        self._was_tried = True
        return records

    def guard(self, transaction: Transaction) -> None:
        transaction.guard_life(self.broker_id, NO_LIFE)

    def fail(self, error_code: int, message: str) -> None:
        """Refuse the unregistration."""
        self.is_last = True
        self.error_code = error_code
        self.message = message


def _check(view: ClusterState, broker_id: int) -> None:
    if broker_id not in view.broker_ids:
        raise Refusal(errors.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id}")
    if not view.brokers or is_alive(view, broker_id):
        raise Refusal(
            errors.INVALID_REQUEST,
            f"broker {broker_id} lives: stop it first, it would register again",
        )
    kept = 0
    example = ""
    for topic in view.topics.values():
        for index, row in enumerate(topic.partitions):
            # It is not known which brokers have replicas of a partition that stands still.
            if broker_id in row.replicas or stands_still(row):
                kept += 1
                example = example or f"{topic.name}-{index}"
    if kept:
        raise Refusal(
            errors.INVALID_REQUEST,
            f"broker {broker_id} has replicas of {kept} partitions, {example} among them: give "
            "them to others first (tarry brokers drain)",
        )


def _strikes(view: ClusterState, broker_id: int) -> list[MetadataRecord]:
    """Return the records that take this broker out of the deletions which wait for it."""
    records: list[MetadataRecord] = []
    for deleted in view.deleted_topics.values():
        if broker_id not in deleted.broker_ids:
            continue
        left = [other for other in deleted.broker_ids if other != broker_id]
        if left:
            records.append(DeletionPending(topic_id=deleted.topic_id, broker_ids=left))
        else:
            records.append(TopicRemoved(topic_id=deleted.topic_id))
    return records
