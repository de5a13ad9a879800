"""ProducerFace: the calls of a producer that do not wait, the same in every face."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.client.core.producer.core import ProducerCore
from tarry.client.face.face import ClientFace
from tarry.client.settings import ProducerSettings

if TYPE_CHECKING:
    from tarry.client.core.producer.due import DueGiven
    from tarry.client.metrics import ProducerMetrics


def due_of(deliver_at: object, deliver_after: object, schedule_id: object) -> DueGiven:
    """Return the checked arguments of a send of which at least one is given; raise TypeError or
    ValueError for invalid ones."""
    # Imported here, because few programs delay records.
    from tarry.client.face.due import due_given

    return due_given(deliver_at, deliver_after, schedule_id)


def cancel_of(schedule_id: object) -> DueGiven:
    """Return the checked arguments for cancelling the record with this id."""
    from tarry.client.face.due import cancel_given

    return cancel_given(schedule_id)


def check_receipt_alone(*others: object) -> None:
    """Check that a cancel by a receipt names nothing else."""
    if any(each is not None for each in others):
        raise TypeError(
            "cancel takes a receipt alone, or a topic with schedule_id and, if the record was sent "
            "with them, key or partition"
        )


class ProducerFace(ClientFace[ProducerCore]):
    """Face to be subclassed."""

    settings: ProducerSettings

    def metrics(self) -> ProducerMetrics:
        """Return what this producer has done so far; cheap enough for every call."""
        with self._driver.lock:
            return self._core.metrics(self._driver.now_ms())

    @property
    def trouble(self) -> str:
        """Reason why records are not sent at the moment; empty if nothing seems wrong."""
        with self._driver.lock:
            return self._core.trouble(self._driver.now_ms())

    @property
    def settled(self) -> int:
        """Count that grows whenever a broker takes records, or refuses them for good."""
        return self._core.sender.settled

    @property
    def acknowledged(self) -> int:
        """Number of records that brokers have taken; with acks=0 those that were sent."""
        return self._core.accumulator.acknowledged

    @property
    def is_waiting(self) -> bool:
        """True if records wait to be acknowledged, or the last ones waited in vain."""
        accumulator = self._core.accumulator
        return accumulator.has_expired or not accumulator.is_empty
