"""Check of positions by leader epoch: does the log of a new leader still hold the records that were
read (KIP-320)?

When the leader epoch grows, OffsetForLeaderEpoch asks the new leader where the epoch of the last
fetched batch ends in its log.  If that is before the position, records that were read are lost: the
check raises `LogTruncated`, and the user decides where to go on.  The partition is not fetched
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tarry.base.errors import NONE
from tarry.client.core import reactions
from tarry.client.core.connections import Connections
from tarry.client.core.consumer.lookup import CONSUMER_ID
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.metadata import Metadata
from tarry.client.core.refresh import Refresh
from tarry.client.errors import LogTruncated, broker_error
from tarry.link.errors import ClientError, UnsupportedVersion
from tarry.link.exchange import Exchange
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    decode_offset_for_leader_epoch_response,
)

OFFSET_UNDEFINED: Final = -1


class EpochCheck:
    """Check that collects positions in `is_needed` and asks the leaders in `work`."""

    def __init__(
        self,
        connections: Connections,
        metadata: Metadata,
        refresh: Refresh,
        forget: Callable[[PartitionPosition], None],
    ) -> None:
        """`forget` subtracts the buffered bytes of a partition from the total."""
        self._forget = forget
        self.connections = connections
        self.metadata = metadata
        self.refresh = refresh
        self._wanted: dict[int, list[PartitionPosition]] = {}

    def is_needed(self, position: PartitionPosition, leader_id: int, leader_epoch: int) -> bool:
        """Return true if a position must be checked before a fetch from it; queue the question if
        so."""
        if position.fetch_epoch < 0 or leader_epoch <= position.checked_epoch:
            # Nothing was read yet, or the leader has not changed.
            position.checked_epoch = leader_epoch
            return False
        if not position.is_being_checked:
            position.is_being_checked = True
            # An answer of the old leader that is still on its way may hold records that the new one
            # lacks.
            position.era += 1
            self._wanted.setdefault(leader_id, []).append(position)
        return True

    def drop_fetched(self, position: PartitionPosition) -> None:
        """Drop the fetched batches; the next turn checks the position again."""
        self._forget(position)
        position.drop_fetched()

    def work(self, now_ms: int) -> None:
        wanted = self._wanted
        self._wanted = {}
        for leader_id, positions in wanted.items():
            connection = self.connections.for_broker(leader_id)
            assert connection is not None
            connection.send(_OffsetForLeaderEpoch(self, positions), now_ms)


class _Asked(NamedTuple):
    """A position with its state when the question was sent."""

    position: PartitionPosition
    era: int
    fetch_offset: int
    fetch_epoch: int
    leader_epoch: int


class _OffsetForLeaderEpoch(Exchange[OffsetForLeaderEpochResponse]):
    """Exchange that checks the positions of one leader."""

    def __init__(self, check: EpochCheck, positions: list[PartitionPosition]) -> None:
        super().__init__(
            api_keys.OFFSET_FOR_LEADER_EPOCH,
            decode_offset_for_leader_epoch_response,
            check.connections.settings.request_timeout_ms,
        )
        self.check = check
        self._asked = {
            (one.topic, one.partition): _Asked(
                one, one.era, one.fetch_offset, one.fetch_epoch, self._epoch_of(one)
            )
            for one in positions
        }

    def _epoch_of(self, position: PartitionPosition) -> int:
        leader = self.check.metadata.leader_of(position.topic, position.partition)
        return leader.leader_epoch if leader is not None else -1

    def build(self, version: int) -> Message:
        topics: dict[str, OffsetForLeaderTopic] = {}
        for (name, index), asked in self._asked.items():
            topic = topics.setdefault(name, OffsetForLeaderTopic(name))
            topic.partitions.append(
                OffsetForLeaderPartition(index, asked.leader_epoch, asked.fetch_epoch)
            )
        return OffsetForLeaderEpochRequest(replica_id=CONSUMER_ID, topics=[*topics.values()])

    def on_response(self, response: OffsetForLeaderEpochResponse, now_ms: int) -> None:
        for topic in response.topics:
            for answer in topic.partitions:
                self._settle(topic.topic, answer, now_ms)
        # Partitions that the answer leaves out are checked again.
        self._again(now_ms)

    def _settle(self, topic: str, answer: EpochEndOffset, now_ms: int) -> None:
        asked = self._asked.pop((topic, answer.partition), None)
        if asked is None:
            return
        position = asked.position
        position.is_being_checked = False
        if asked.era != position.era:
            return
        if answer.error_code != NONE:
            self._refused(position, answer.error_code, now_ms)
        elif answer.end_offset == OFFSET_UNDEFINED or answer.end_offset < asked.fetch_offset:
            if all(fetched.is_sound() for fetched in position.buffered):
                self._truncated(asked, answer.end_offset)
            else:
                # A damaged batch may claim any offset, so it does not show that records are lost.
                self.check.drop_fetched(position)
        else:
            position.checked_epoch = asked.leader_epoch

    def _truncated(self, asked: _Asked, end_offset: int) -> None:
        position = asked.position
        ends = f"ends at {end_offset}" if end_offset >= 0 else "is unknown"
        offset = str(end_offset) if end_offset >= 0 else "an offset that you choose"
        position.fail_void(
            LogTruncated(
                f"{position} was read up to offset {asked.fetch_offset}, but epoch "
                f"{asked.fetch_epoch} {ends} in the log of its new leader: records are gone; to go "
                f"on, seek({position.topic!r}, {position.partition}, {offset})"
            )
        )

    def _refused(self, position: PartitionPosition, code: int, now_ms: int) -> None:
        reaction = reactions.reaction_to(reactions.LOOKUP, code)
        if reaction == reactions.FAIL:
            position.fail(broker_error(code, f"{position} cannot be checked"))
            return
        position.refused_by = code
        if reaction == reactions.REFRESH:
            self.check.refresh.want_after(code, now_ms)
        self._pause(position, now_ms)

    def _pause(self, position: PartitionPosition, now_ms: int) -> None:
        position.retry_at_ms = now_ms + self.check.connections.settings.retry_backoff_ms

    def _again(self, now_ms: int) -> None:
        """Check the positions without an answer again, after a pause."""
        for asked in self._asked.values():
            asked.position.is_being_checked = False
            if asked.era == asked.position.era:
                self._pause(asked.position, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        if isinstance(error, UnsupportedVersion):
            # The broker is too old for this request: go on without a check.
            for asked in self._asked.values():
                if asked.era == asked.position.era:
                    asked.position.checked_epoch = asked.leader_epoch
        self._again(now_ms)
