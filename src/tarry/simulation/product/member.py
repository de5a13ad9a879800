"""Member of a group: a consumer of the product that shares its topics with others."""

from __future__ import annotations

from typing import Any, Final

from tarry.base.ids import TopicPartition
from tarry.client.core.group.events import REVOKED, GroupEvent
from tarry.client.core.group.offsets.commit import Commit
from tarry.client.core.group.poll import Poll
from tarry.client.core.operation import Operation
from tarry.client.errors import CorruptRecords, GroupFailed
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.headers import decode_request_header
from tarry.protocol.registry import MESSAGES
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.product.client_node import User
from tarry.simulation.product.consumer import ConsumerNode
from tarry.simulation.product.history import Told
from tarry.wire.reader import Reader

_CLOSE_MS: Final = 2_000


class MemberNode(ConsumerNode):
    """Client that polls, works and commits automatically, until it is told to leave."""

    # Where the user has finished, by partition: what a commit may say.
    _finished: dict[TopicPartition, int]

    @property
    def owned(self) -> list[TopicPartition]:
        """Partitions that the group has assigned."""
        return list(self.consumer_core.membership.owned)

    def user(self) -> User:
        context = self.context
        self._finished = {}
        self._current: dict[TopicPartition, int] = {}
        self.consumer_core.subscribe([topic.name for topic in context.topics])
        while not self.is_to_end:
            # What was handed out before is finished with the next poll.
            self._finished.update(self._current)
            self._current = {}
            yield from self.poll()
            self._learn_commits()
            yield Delay(context.random.randrange(self.work_now_ms_max) if self._current else 0)
        self._finished.update(self._current)
        owned = self.owned
        closing = self.consumer_core.begin_close(
            _CLOSE_MS, self.clock.now_ms, leave=True, is_finished=True
        )
        yield closing
        self._note_last_commit(closing.commit, owned)

    def take_error(self, error: ClientError) -> None:
        if isinstance(error, CorruptRecords):
            super().take_error(error)
        elif isinstance(error, GroupFailed):
            # Another process has taken this instance's place.
            self.kill()
        else:
            self.context.history.violate(f"{self.name} got from its poll: {error}")

    def on_handed_out(self, place: tuple[bytes, int], offset: int, end_offset: int) -> None:
        hand_out = self.history.handed_out[-1]
        self._current[hand_out.place] = end_offset

    def on_callback(self, event: GroupEvent, operation: Operation[Any]) -> None:
        self._learn_commits()
        if event.kind == REVOKED and isinstance(operation, Poll):
            self._note_last_commit(operation.commit, event.places)
        self.history.told.append(
            Told(
                self.clock.now_ms,
                self.name,
                event.kind,
                list(event.places),
                dict(self.history.committed),
            )
        )

    def _note_last_commit(self, commit: Commit | None, places: list[TopicPartition]) -> None:
        """Note that a commit was tried and refused: the next owner reads some records again."""
        if commit is not None and (not commit.is_done or commit.error is not None):
            self.history.uncommitted.update(dict.fromkeys(places))

    def _learn_commits(self) -> None:
        """Note what the coordinator has taken."""
        committed = self.history.committed
        for place, offset in self.consumer_core.committer.committed.items():
            if place in self.consumer_core.membership.owned:
                committed[place] = max(offset, committed.get(place, 0))

    def on_request(self, api_key: int, frame: bytes) -> None:
        """Check that a commit names only owned partitions and finished offsets."""
        if api_key != api_keys.OFFSET_COMMIT:
            return
        reader = Reader(frame, 4)
        header = decode_request_header(reader)
        request: Any = MESSAGES[api_key].decode_request(reader, header.api_version)
        for topic in request.topics:
            for partition in topic.partitions:
                place = (topic.name, int(partition.partition_index))
                offset = int(partition.committed_offset)
                name = f"{place[0]}-{place[1]}"
                if place not in self.consumer_core.membership.owned:
                    self.context.history.violate(f"{self.name} commits {name}, not its own")
                elif offset > max(self._finished.get(place, 0), self._begun(place)):
                    self.context.history.violate(
                        f"{self.name} commits {offset} of {name}, and its user has finished "
                        f"{self._finished.get(place, 0)}"
                    )

    def _begun(self, place: TopicPartition) -> int:
        """Return where the group stood, which a member without records may commit again."""
        return self.history.committed.get(place, 0)
