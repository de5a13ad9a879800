"""Member of a group: a consumer of the product that shares its topics with others."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tarry.base.ids import TopicPartition
from tarry.client.core.group.events import ASSIGNED, REVOKED, GroupEvent
from tarry.client.core.group.offsets.commit import Commit
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.group.poll import Poll
from tarry.client.core.operation import Operation
from tarry.client.errors import CommitFailed, CorruptRecords, GroupFailed
from tarry.link.errors import ClientError, TimedOut
from tarry.protocol import api_keys
from tarry.protocol.headers import decode_request_header
from tarry.protocol.registry import MESSAGES
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.product.client_node import User
from tarry.simulation.product.consumer import ConsumerNode
from tarry.simulation.product.history import Told
from tarry.wire.reader import Reader

_CLOSE_MS: Final = 2_000
# One of so many polls with records is followed by a commit of the user.
_COMMITS_EVERY: Final = 6


class MemberNode(ConsumerNode):
    """Client that polls, works and commits automatically, now and then by itself too, until it is
    told to leave."""

    # By partition, the offset up to which the user has finished: the most that a commit may say.
    _finished: dict[TopicPartition, int]
    # By partition, the offset that the user had finished when it was told that the partition goes.
    _gone: dict[TopicPartition, int]
    # Partitions of which the user was told that it owns them.
    _told: dict[TopicPartition, None]
    # Count of commits without a wait whose callback was not called yet.
    _unanswered: int
    # True if the process has ended because its instance belongs to another process.
    is_fenced = False
    # One of so many polls with records ends the user's loop with a failure; 0 if none does.
    fails_every = 0
    has_failed = False

    @property
    def owned(self) -> list[TopicPartition]:
        """Partitions that the group has assigned."""
        return list(self.consumer_core.membership.owned)

    def user(self) -> User:
        context = self.context
        # A generator of its own, so that what the member draws changes nothing else of a run.
        chance = Random(f"{self.world.seed} {self.name}")
        self._finished = {}
        self._current: dict[TopicPartition, int] = {}
        self._gone = {}
        self._told = {}
        self._unanswered = 0
        self.consumer_core.subscribe([topic.name for topic in context.topics])
        while not self.is_to_end:
            # Records that were handed out before are finished when the user polls again.
            self._finished.update(self._current)
            self._current = {}
            yield from self.poll()
            self._learn_commits()
            yield Delay(context.random.randrange(self.work_now_ms_max) if self._current else 0)
            if self._current and context.random.randrange(_COMMITS_EVERY) == 0:
                self._commit_async()
            may_fail = self.fails_every > 0 and self._current and not context.is_quiet
            if may_fail and chance.randrange(self.fails_every) == 0:
                self.has_failed = True
                break
        if self.has_failed:
            # Other members read again the records that this one has begun.
            self.history.uncommitted.update(dict.fromkeys(self._current))
        else:
            self._finished.update(self._current)
            self.consumer_core.finish_handed_out()
        owned = self.owned
        closing = self.consumer_core.begin_close(_CLOSE_MS, self.clock.now_ms, leave=True)
        yield closing
        self._note_last_commit(closing.commit, owned)
        for topic, index in self._told:
            self.context.history.violate(
                f"{self.name} was closed, and never told that {topic}-{index} goes"
            )
        if self._unanswered:
            self.context.history.violate(
                f"{self.name} was closed, and {self._unanswered} callbacks of commits never called"
            )

    def _commit_async(self) -> None:
        """Commit finished offsets, and at times those of partitions that went to other members."""
        self._finished.update(self._current)
        what = dict(self._finished)
        if self.context.random.randrange(2) == 0:
            gone = self._gone.items()
            what.update({place: end for place, end in gone if place not in self._told})
        offsets = {
            place: CommittedOffset(offset, metadata=f"{self.name} at {offset}")
            for place, offset in what.items()
        }
        self._unanswered += 1
        self.consumer_core.commit_async(offsets, self._on_committed, self.clock.now_ms)

    def _on_committed(
        self, offsets: dict[TopicPartition, CommittedOffset], error: ClientError | None
    ) -> None:
        self._unanswered -= 1
        if error is not None and not isinstance(error, CommitFailed | TimedOut | GroupFailed):
            self.context.history.violate(f"{self.name} got for a commit: {error}")
        for (topic, index), offset in offsets.items():
            if offset.metadata != f"{self.name} at {offset.offset}":
                self.context.history.violate(
                    f"{self.name} heard of {offset} for {topic}-{index}, which it never committed"
                )

    def take_error(self, error: ClientError) -> None:
        if isinstance(error, CorruptRecords):
            super().take_error(error)
        elif isinstance(error, GroupFailed):
            # Another process has taken this instance's place, or had it once: a broker that loses
            # power may go back to an older process.
            self.is_fenced = True
            self.kill()
        else:
            self.context.history.violate(f"{self.name} got from its poll: {error}")

    def on_handed_out(self, place: tuple[bytes, int], offset: int, end_offset: int) -> None:
        hand_out = self.history.handed_out[-1]
        self._current[hand_out.place] = end_offset

    def on_callback(self, event: GroupEvent, operation: Operation[Any]) -> None:
        self._learn_commits()
        # With a close, a partition that goes is committed after the callback.
        self._follow(event, is_over=isinstance(operation, Poll))
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

    def _follow(self, event: GroupEvent, *, is_over: bool) -> None:
        """Check that an assigned partition was not owned before, and that a revoked one was."""
        is_assigned = event.kind == ASSIGNED
        for place in event.places:
            if event.kind == REVOKED and place not in self.consumer_core.membership.owned:
                self.context.history.violate(
                    f"{self.name} got {event.callback} of {place[0]}-{place[1]}, which is gone "
                    "already"
                )
            if (place in self._told) == is_assigned:
                self.context.history.violate(
                    f"{self.name} got {event.callback} of {place[0]}-{place[1]}, and that was "
                    f"{'its own already' if is_assigned else 'not its own'}"
                )
            if is_assigned:
                self._told[place] = None
                continue
            self._told.pop(place, None)
            if is_over:
                finished = self._finished.pop(place, 0)
                self._gone[place] = max(finished, self._gone.get(place, 0))
                self._current.pop(place, None)

    def _note_last_commit(self, commit: Commit | None, places: list[TopicPartition]) -> None:
        """Note that a commit was tried and refused: the next owner reads some records again."""
        if commit is not None and (not commit.is_done or commit.error is not None):
            self.history.uncommitted.update(dict.fromkeys(places))

    def _learn_commits(self) -> None:
        """Note the commits that the coordinator has taken."""
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
        """Return the committed offset, which a member without records may commit again."""
        return self.history.committed.get(place, 0)
