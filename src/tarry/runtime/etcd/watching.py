"""A watch of etcd: its answers joined to whole revisions."""

from __future__ import annotations

from tarry.base.etcd import EtcdAnswer, Removed, RevisionSeen, Row, WatchEnded
from tarry.runtime.etcd import etcd_pb2 as pb
from tarry.runtime.etcd.calls import row_of


class Watching:
    """Watch; `read` takes each message of its call."""

    def __init__(self, call_id: int, stream_id: int) -> None:
        self.call_id = call_id
        self.stream_id = stream_id
        self.is_ended = False
        # Parts of a revision of which the rest is still to come.
        self._fragments: list[pb.Event] = []

    def read(self, data: bytes) -> list[EtcdAnswer]:
        """Return what a message tells: whole revisions in order, or how far the watch is."""
        response = pb.WatchResponse.FromString(data)
        if response.canceled:
            self.is_ended = True
            reason = response.cancel_reason or "etcd has ended the watch"
            if response.compact_revision:
                reason = f"revisions below {response.compact_revision} were compacted away"
            return [WatchEnded(self.call_id, reason, response.compact_revision)]
        if response.created:
            return []
        self._fragments += response.events
        if response.fragment:
            return []
        events, self._fragments = self._fragments, []
        if not events:
            return [RevisionSeen(self.call_id, response.header.revision, [])]
        return self._revisions(events)

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
