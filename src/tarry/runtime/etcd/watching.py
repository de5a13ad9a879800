"""Watch of etcd: its messages joined to whole revisions."""

from __future__ import annotations

from typing import Final

from tarry.base.etcd import EtcdAnswer, Removed, RevisionSeen, Row, WatchEnded
from tarry.runtime.etcd import etcd_pb2 as pb
from tarry.runtime.etcd.calls import row_of
from tarry.runtime.etcd.grpc_link import LinkBroken

# Bytes of one revision, which is one transaction: etcd accepts 1.5 MB by default.
REVISION_BYTES_MAX: Final = 64 * 1024 * 1024


class Watching:
    """Watch of one prefix; `read` takes each message of its call."""

    def __init__(self, call_id: int, stream_id: int) -> None:
        self.call_id = call_id
        self.stream_id = stream_id
        self.is_ended = False
        # Events of a revision whose end may still come, and the bytes of their messages.
        self._events: list[pb.Event] = []
        self._size = 0

    def read(self, data: bytes) -> list[EtcdAnswer]:
        """Return the answers in a message: whole revisions in order, or the watch's progress.

        `LinkBroken` if etcd would not send such a message.
        """
        response = pb.WatchResponse.FromString(data)
        if response.canceled:
            self.is_ended = True
            reason = response.cancel_reason or "etcd has ended the watch"
            if response.compact_revision:
                reason = f"revisions below {response.compact_revision} were compacted away"
            return [WatchEnded(self.call_id, reason, response.compact_revision)]
        if response.created:
            return []
        self._events += response.events
        self._size += len(data)
        if response.fragment:
            return self._begun_revisions()
        events, self._events, self._size = self._events, [], 0
        if not events:
            return [RevisionSeen(self.call_id, response.header.revision, [])]
        return self._revisions(events)

    def _begun_revisions(self) -> list[EtcdAnswer]:
        """Return the revisions that a later one follows; the last one may still get more events."""
        events = self._events
        last = len(events)
        while last and events[last - 1].kv.mod_revision == events[-1].kv.mod_revision:
            last -= 1
        whole, self._events = events[:last], events[last:]
        if whole:
            self._size = 0
        elif self._size > REVISION_BYTES_MAX:
            raise LinkBroken(f"more than {REVISION_BYTES_MAX} bytes of one revision")
        return self._revisions(whole) if whole else []

    def _revisions(self, events: list[pb.Event]) -> list[EtcdAnswer]:
        found: list[EtcdAnswer] = []
        changes: list[Row | Removed] = []
        revision = events[0].kv.mod_revision
        for event in events:
            pair = event.kv
            if pair.mod_revision != revision:
                found.append(RevisionSeen(self.call_id, revision, changes))
                revision, changes = pair.mod_revision, []
            if event.type == pb.Event.DELETE:
                changes.append(Removed(pair.key, pair.mod_revision))
            else:
                changes.append(row_of(pair))
        found.append(RevisionSeen(self.call_id, revision, changes))
        return found
