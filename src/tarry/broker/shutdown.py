"""The clean end: when everything is durable and answered, the logs are closed and marked.

Like `lifecycle` it may wait for the disk: nobody is served any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base.errors import StorageError

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


def maybe_finish_stop(broker: Broker) -> None:
    """Mark the clean end once everything is durable and answered, or time is up."""
    is_late = broker.now_ms >= broker.stop_deadline_ms
    if not is_late and not _is_at_rest(broker):
        return
    if not broker.flushes.is_idle():
        broker.stop("the disk did not finish a flush in time; the next start scans what it left")
        return
    for partition in broker.topics.partitions():
        partition.producers.settle()
    try:
        broker.logs.close_cleanly()
    except StorageError as error:
        broker.stop(f"the clean end could not be written ({error}); the next start scans the logs")
        return
    broker.stop("")


def _is_at_rest(broker: Broker) -> bool:
    if not broker.flushes.is_idle() or broker.has_work_left():
        return False
    return not any(connection.has_waiting() for connection in broker.answers.connections.values())
