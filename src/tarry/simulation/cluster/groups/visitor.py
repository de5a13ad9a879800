"""Visitor of offsets: commits and reads the offset of one group at one broker, over and over.

All visitors must read what one visitor has committed, whichever broker coordinates the group then.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.protocol import api_keys
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    decode_offset_commit_response,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    decode_offset_fetch_response,
)
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, RunClient, Script
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.groups.history import MovedOffset
from tarry.simulation.cluster.remaker import MADE_AGAIN

# Group of the visitors; it has no members.
VISITED_GROUP: Final = "visited"
_PAUSE_MS_MAX: Final = 120
_COMMIT_MS: Final = 5_000
_COMMIT_VERSION: Final = 8
_FETCH_VERSION: Final = 8

# Errors that a client may get while a group moves, or while too few replicas are in sync.
_PASSING: Final = (
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    # Some brokers may not know the topic yet.
    errors.UNKNOWN_TOPIC_OR_PARTITION,
)


class OffsetsVisitor(RunClient):
    """Client of one broker; once the run is quiet it only reads."""

    def __init__(
        self, context: RunContext, name: str, run: RunContext, offset: MovedOffset, topic: str
    ) -> None:
        super().__init__(context, name, run)
        self._offset = offset
        self._topic = topic

    def script(self) -> Script:
        random = self.context.random
        while True:
            yield Delay(1 + random.randrange(_PAUSE_MS_MAX))
            if random.randrange(3) == 0 and not self.run.is_quiet:
                yield from self._commit()
            else:
                yield from self._read()

    def _commit(self) -> Script:
        seen = self._offset.begin(self.name, self.context.clock.now_ms)
        partitions = [OffsetCommitRequestPartition(0, seen.number, -1, "")]
        request = OffsetCommitRequest(
            group_id=VISITED_GROUP,
            topics=[OffsetCommitRequestTopic(self._topic, partitions=partitions)],
        )
        query = Query(
            api_keys.OFFSET_COMMIT,
            _COMMIT_VERSION,
            request,
            decode_offset_commit_response,
            _COMMIT_MS,
        )
        outcome = yield query
        if outcome is None or not isinstance(outcome.answer, OffsetCommitResponse):
            return
        code = outcome.answer.topics[0].partitions[0].error_code
        if code == errors.NONE:
            seen.answered_ms = self.context.clock.now_ms
        else:
            self._check_error("a commit", code)

    def _read(self) -> Script:
        sent_ms = self.context.clock.now_ms
        topics = [OffsetFetchRequestTopics(self._topic, partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(VISITED_GROUP, topics=topics)])
        outcome = yield Query(
            api_keys.OFFSET_FETCH, _FETCH_VERSION, request, decode_offset_fetch_response
        )
        if outcome is None or not isinstance(outcome.answer, OffsetFetchResponse):
            return
        group = outcome.answer.groups[0]
        if group.error_code != errors.NONE:
            self._check_error("offsets", group.error_code)
            return
        number = int(group.topics[0].partitions[0].committed_offset)
        missed = self._offset.missed_by(number, self.name, sent_ms)
        if missed is not None:
            self.context.history.violate(
                f"{self.name} is told that {number} was committed last at {sent_ms} ms, and that "
                f"was {missed}"
            )

    def _check_error(self, what: str, code: int) -> None:
        if code not in _PASSING:
            self.context.history.violate(f"{self.name} asks for {what} and gets {error_name(code)}")


class MadeTopicVisitor(RunClient):
    """Visitor that commits offsets of the topic that is made again and again, and reads them.

    A broker whose metadata knows the topic has to keep its offsets, even without logs of the topic.
    """

    def __init__(self, context: RunContext, name: str, run: RunContext, node: ClusterNode) -> None:
        super().__init__(context, name, run)
        self._node = node
        # Count of answers that were checked, so that a test knows that there were some.
        self.compared = 0

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            yield Delay(1 + random.randrange(_PAUSE_MS_MAX))
            known = self._known()
            if known is not None:
                yield from self._commit(known, random.randrange(known[2]))

    def _known(self) -> tuple[int, bytes, int] | None:
        """Return the broker's life, and the topic's id and partitions as the broker knows it."""
        broker = self._node.broker
        topic = None if broker is None else broker.cluster.topic(MADE_AGAIN)
        return None if topic is None else (self._node.life, topic.topic_id, len(topic.partitions))

    def _commit(self, known: tuple[int, bytes, int], index: int) -> Script:
        partitions = [OffsetCommitRequestPartition(index, 1, -1, "")]
        outcome = yield Query(
            api_keys.OFFSET_COMMIT,
            _COMMIT_VERSION,
            OffsetCommitRequest(
                group_id=VISITED_GROUP,
                topics=[OffsetCommitRequestTopic(MADE_AGAIN, partitions=partitions)],
            ),
            decode_offset_commit_response,
            _COMMIT_MS,
        )
        if outcome is None or not isinstance(outcome.answer, OffsetCommitResponse):
            return
        code = outcome.answer.topics[0].partitions[0].error_code
        if self._known() != known:
            return
        self.compared += 1
        if code == errors.UNKNOWN_TOPIC_OR_PARTITION:
            self._violate(index, "refuses a commit")
        elif code == errors.NONE:
            yield from self._read(known, index)

    def _read(self, known: tuple[int, bytes, int], index: int) -> Script:
        topics = [OffsetFetchRequestTopics(MADE_AGAIN, partition_indexes=[index])]
        outcome = yield Query(
            api_keys.OFFSET_FETCH,
            _FETCH_VERSION,
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(VISITED_GROUP, topics=topics)]),
            decode_offset_fetch_response,
        )
        if outcome is None or not isinstance(outcome.answer, OffsetFetchResponse):
            return
        group = outcome.answer.groups[0]
        if self._known() != known or group.error_code != errors.NONE:
            return
        if group.topics[0].partitions[0].committed_offset < 0:
            self._violate(index, "forgets a commit")

    def _violate(self, index: int, what: str) -> None:
        self.context.history.violate(
            f"{self._node.name} {what} of {MADE_AGAIN}-{index}, which its metadata knows"
        )
