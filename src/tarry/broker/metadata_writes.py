"""Changes of metadata: decided as records, durable, applied, and only then answered.

The embedded store's log is flushed with the same rounds as the partitions'.  Who proposed a
change waits in the metadata purgatory until its records are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.broker import changes_told
from tarry.cluster.embedded import EmbeddedStore
from tarry.cluster.records import MetadataRecord
from tarry.cluster.state import ClusterView
from tarry.log.owner import LogOwner
from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.broker import Broker
    from tarry.broker.request import RequestContext

METADATA_KEY: Final = "metadata"


@mypyc_attr(allow_interpreted_subclasses=True)
class MetadataWrite(DelayedOperation):
    """Waits until proposed records are applied; a subclass answers in `on_complete`.

    `error_code` tells how it ended: NONE, REQUEST_TIMED_OUT (it may still be applied later), or
    KAFKA_STORAGE_ERROR (nothing was kept).
    """

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.error_code: int = errors.REQUEST_TIMED_OUT
        self.required_offset = -1
        self.store: EmbeddedStore | None = None
        self._changes: list[str] = []
        self._asker = ""

    def note_changes(
        self, view: ClusterView, context: RequestContext, records: list[MetadataRecord]
    ) -> None:
        """Remember what a client is about to change, for the log; before it is proposed."""
        self._changes = changes_told.worded(view, records)
        self._asker = changes_told.asker(context)

    def tell_changes(self) -> None:
        """Write into the log what became of it; when it has ended."""
        changes_told.tell(self._changes, self._asker, self.error_code)

    def try_complete(self) -> bool:
        store = self.store
        if store is None:
            return False
        if store.applied_end_offset >= self.required_offset:
            self.error_code = errors.NONE
            return self.force_complete()
        if self.required_offset > store.log.log_end_offset:
            self.error_code = errors.KAFKA_STORAGE_ERROR
            return self.force_complete()
        return False


class MetadataLogOwner(LogOwner):
    """Drives the store's log; what a flush makes durable is applied and reacted to."""

    def __init__(self, broker: Broker, store: EmbeddedStore) -> None:
        super().__init__("cluster metadata", store.log)
        self.broker = broker
        self.store = store

    def on_write_failed(self) -> None:
        self.store.on_write_failed()
        # Whoever waits for what was dropped must hear of it.
        self.broker.check_metadata_later()

    def on_flushed(self, offset: int) -> bool:
        for record in self.store.flushed(offset):
            self.broker.react(record)
        self.broker.check_metadata_later()
        return False


def propose(broker: Broker, records: list[MetadataRecord], write: MetadataWrite) -> None:
    """Append the records; `write` completes when they are applied, or cannot be."""
    write.store = broker.store
    if not records:
        write.required_offset = broker.store.applied_end_offset
        write.try_complete()
        return
    try:
        write.required_offset = broker.store.append(records, broker.now_wall_ms)
    except StorageError:
        write.error_code = errors.KAFKA_STORAGE_ERROR
        write.force_complete()
        return
    broker.flushes.touch(broker.metadata_owner)
    broker.metadata_waits.watch(write, [METADATA_KEY])


def propose_or_wait(broker: Broker, records: list[MetadataRecord], write: MetadataWrite) -> None:
    """Append the records; without any, wait for what others proposed.

    What is refused, or found as it is, rests on what is not durable yet: on somebody else's change.
    """
    if records:
        propose(broker, records, write)
    else:
        wait_until_applied(broker, broker.store.log.log_end_offset, write)


def wait_until_applied(broker: Broker, offset: int, write: MetadataWrite) -> None:
    """`write` completes when everything below `offset`, which others proposed, is applied."""
    write.store = broker.store
    write.required_offset = offset
    broker.metadata_waits.watch(write, [METADATA_KEY])


def failure_sentence(error_code: int) -> str:
    """What a metadata write that did not end well means for who asked for it."""
    if error_code == errors.REQUEST_TIMED_OUT:
        return "the disk did not take it within the request's time; it may yet be done"
    return "the disk did not take it; nothing was changed"
