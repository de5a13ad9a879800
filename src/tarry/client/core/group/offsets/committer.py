"""Committer: sends the commits of a consumer, one at a time.

Commits that arrive while one is in flight are merged into the next one, with the newer offset of
each partition.  Offsets are never committed for partitions that the member does not own.  The
`finished` offset of a partition lies behind the records that the user has finished: those handed
out before the last poll.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable

from tarry.base import errors
from tarry.base.errors import NONE, error_name
from tarry.base.ids import TopicPartition
from tarry.client.core.group import reactions
from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.core.group.membership import JOINING, SYNCING, Membership
from tarry.client.core.group.offsets.commit import Commit, CommitOutcome
from tarry.client.core.group.offsets.requests import (
    VERSION_OF_NAMES_MAX,
    CommittedOffset,
    commit_request,
)
from tarry.client.core.operation import Operation, Operations
from tarry.client.errors import CommitFailed, broker_error
from tarry.link.errors import ClientError, TimedOut
from tarry.link.exchange import Exchange
from tarry.link.tasks import Task
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    decode_offset_commit_response,
)

log = logging.getLogger("tarry.client")


class Committer:
    """The commits of one consumer."""

    def __init__(
        self, coordinator: CoordinatorFinder, membership: Membership, timeout_ms: int
    ) -> None:
        self.coordinator = coordinator
        self.membership = membership
        self.tasks = coordinator.connections.tasks
        self.committed: dict[TopicPartition, int] = {}
        # Numbers of commits that succeeded and that failed.
        self.taken = 0
        self.failed = 0
        self._timeout_ms = timeout_ms
        self._under_way: dict[Commit, int] = {}
        self._waiting: dict[Commit, int] = {}
        self._is_in_flight = False
        self._pauses = coordinator.connections.pauses()
        self._deadline = Task(self._give_up)
        # Outcomes for the callbacks of commits.
        self.outcomes: deque[CommitOutcome] = deque()

    @property
    def is_idle(self) -> bool:
        return not self._under_way and not self._waiting

    def begin(self, commit: Commit, timeout_ms: int, now_ms: int) -> None:
        """Begin a commit; it is sent as soon as no other one is in flight."""
        strange = self._not_owned(commit.offsets)
        if strange:
            names = _names(strange)
            sentence = f"{names} is not assigned to this member, so it cannot commit there"
            commit.end(CommitFailed(sentence, is_retriable=False))
            self._count(commit)
            return
        if not commit.offsets:
            commit.end(None)
            return
        commit.timeout_ms = timeout_ms
        self._waiting[commit] = now_ms + timeout_ms
        self.tasks.schedule_earlier(self._deadline, now_ms + timeout_ms)

    def _not_owned(self, places: Iterable[TopicPartition]) -> list[TopicPartition]:
        membership = self.membership
        if not membership.is_wanted and not membership.owned:
            # The user assigned the partitions himself, without a membership.
            return []
        if membership.generation_id < 0:
            # The partitions are lost, even if the user has not seen the event: only members may
            # commit.
            return list(places)
        return [place for place in places if place not in membership.owned]

    def give_up(self, places: Iterable[TopicPartition]) -> None:
        """Drop these partitions from all commits so far: another member may have read on since,
        even if the partitions come back."""
        for commits in (self._under_way, self._waiting):
            for commit in list(commits):
                commit.gone.update(dict.fromkeys(one for one in places if one in commit.offsets))
                is_sent = self._is_in_flight and commits is self._under_way
                if len(commit.gone) == len(commit.offsets) and not is_sent:
                    del commits[commit]
                    commit.end(_given_up(commit.gone))
                    self._count(commit)

    def work(self, now_ms: int) -> None:
        """Send the waiting commits."""
        if self.is_idle or self._is_in_flight:
            return
        if self.membership.state == SYNCING:
            # The generation is not settled until the assignment arrives.
            return
        if not self.coordinator.is_known:
            self.coordinator.want(now_ms)
            if self.coordinator.refusal is not None:
                self._end_all(self.coordinator.refusal)
            return
        if self._pauses.holds(now_ms):
            return
        if not self._under_way:
            self._under_way, self._waiting = self._waiting, {}
        self._send(now_ms)

    def _in_rebalance(self) -> ClientError:
        return CommitFailed(
            "the group is being rebalanced; poll until it is done, then commit again what is "
            "still assigned",
            is_retriable=True,
        )

    def _send(self, now_ms: int) -> None:
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for commit in list(self._under_way):
            # Partitions that were revoked since the commit began must not be committed.
            strange = list(dict.fromkeys([*commit.gone, *self._not_owned(commit.offsets)]))
            if strange:
                commit.end(_given_up(strange))
                if len(strange) == len(commit.offsets):
                    del self._under_way[commit]
                    self._count(commit)
            offsets.update(commit.offsets)
            for place in strange:
                offsets.pop(place, None)
        if not offsets:
            self._end_under_way(None)
            # The commits behind these ones are sent now: another turn may come late.
            self.work(now_ms)
            return
        self._is_in_flight = True
        exchange = _OffsetCommit(self, self.membership.identity(), offsets, self._timeout_ms)
        if self.membership.state == JOINING:
            # The coordinator accepts the old generation until the last member has joined.
            self.coordinator.send_aside(exchange, now_ms)
        else:
            self.coordinator.send(exchange, now_ms)

    # --- Answers

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._is_in_flight = False
        if error.is_retriable:
            self.coordinator.lose(str(error), now_ms)
            self._pauses.begin(now_ms)
        else:
            self._end_under_way(error)

    def on_answer(
        self,
        response: OffsetCommitResponse,
        who: GroupIdentity,
        offsets: dict[TopicPartition, CommittedOffset],
        now_ms: int,
    ) -> None:
        self._is_in_flight = False
        refused: dict[TopicPartition, int] = {}
        taken: dict[TopicPartition, None] = {}
        for topic in response.topics:
            for partition in topic.partitions:
                place = (topic.name, int(partition.partition_index))
                if partition.error_code == NONE and place in offsets:
                    self.committed[place] = offsets[place].offset
                    taken[place] = None
                elif partition.error_code != NONE:
                    refused[place] = int(partition.error_code)
        if refused:
            place, code = next(iter(refused.items()))
            self._on_refused(place, code, who, now_ms)
        elif len(taken) < len(offsets):
            # Partitions that the answer leaves out may be committed or not: send all offsets again.
            self._pauses.begin(now_ms)
        else:
            self._pauses.failures = 0
            self._end_under_way(None)

    def _on_refused(
        self, place: TopicPartition, code: int, who: GroupIdentity, now_ms: int
    ) -> None:
        reaction = reactions.reaction_to(code)
        if reaction == reactions.RETRY:
            self._pauses.begin(now_ms)
            return
        if reaction == reactions.FIND:
            self.coordinator.lose(f"OffsetCommit: {error_name(code)}", now_ms)
            self._pauses.begin(now_ms)
            return
        is_current = who == self.membership.identity() and not self.membership.is_joining
        self.membership.on_commit_refused(code, who, now_ms)
        self._end_all(self._error_for(place, code, is_current=is_current))

    def _error_for(self, place: TopicPartition, code: int, *, is_current: bool) -> ClientError:
        topic, index = place
        if code in (errors.ILLEGAL_GENERATION, errors.UNKNOWN_MEMBER_ID):
            if not is_current:
                return self._in_rebalance()
            if self.membership.is_wanted:
                return CommitFailed(
                    f"the group has given {topic} [{index}] to another member, because the "
                    "coordinator did not hear from this member in time; records since the last "
                    f"commit will be read again ({error_name(code)})",
                    is_retriable=False,
                )
            return CommitFailed(
                f"group {self.membership.settings.group_id} has members of its own, and only "
                f"they may commit for it ({error_name(code)})",
                is_retriable=False,
            )
        if code == errors.REBALANCE_IN_PROGRESS:
            return self._in_rebalance()
        if self.membership.failure is not None:
            return self.membership.failure
        return broker_error(code, f"the offset of {topic} [{index}] was not committed")

    # --- Ends

    def _end_under_way(self, error: ClientError | None) -> None:
        ended = self._under_way
        self._under_way = {}
        self._pauses.end()
        for commit in ended:
            commit.end(error)
            self._count(commit)

    def _count(self, commit: Commit) -> None:
        if commit.error is None:
            self.taken += 1
        else:
            self.failed += 1

    def _end_all(self, error: ClientError) -> None:
        self._under_way.update(self._waiting)
        self._waiting = {}
        self._end_under_way(error)

    def give_up_all(self, error: ClientError) -> None:
        """Fail all commits; the broker may still carry out one that was sent."""
        self._end_all(error)

    def late_error(self, timeout_ms: int) -> TimedOut:
        """Return the error of a commit that timed out after `timeout_ms`."""
        if timeout_ms == 0:
            return TimedOut("no time was left to wait for the coordinator's answer to a commit")
        reason = self.coordinator.last_error or self.coordinator.trouble
        because = f": {reason}" if reason else ""
        waited = f"{timeout_ms / 1000:g} s"
        return TimedOut(f"the coordinator did not take the offsets within {waited}{because}")

    def _give_up(self, now_ms: int) -> None:
        """Fail the commits that have timed out; the broker may still carry out one that was
        sent."""
        for commits in (self._under_way, self._waiting):
            late = [commit for commit, deadline_ms in commits.items() if deadline_ms <= now_ms]
            for commit in late:
                del commits[commit]
                commit.end(self.late_error(commit.timeout_ms))
                self._count(commit)
        deadlines = [*self._under_way.values(), *self._waiting.values()]
        if deadlines:
            self.tasks.schedule(self._deadline, min(deadlines))


def _names(places: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic} [{index}]" for topic, index in places)


def _given_up(places: Iterable[TopicPartition]) -> CommitFailed:
    sentence = f"{_names(places)} was given up before the offset could be committed"
    return CommitFailed(sentence, is_retriable=False)


class _OffsetCommit(Exchange[OffsetCommitResponse]):
    """Exchange of one commit, sent as `who`."""

    def __init__(
        self,
        committer: Committer,
        who: GroupIdentity,
        offsets: dict[TopicPartition, CommittedOffset],
        timeout_ms: int,
    ) -> None:
        super().__init__(api_keys.OFFSET_COMMIT, decode_offset_commit_response, timeout_ms)
        self.committer = committer
        self.who = who
        self.offsets = offsets

    def version_max(self) -> int:
        return VERSION_OF_NAMES_MAX

    def build(self, version: int) -> Message:
        return commit_request(self.who, self.offsets, version)

    def on_response(self, response: OffsetCommitResponse, now_ms: int) -> None:
        self.committer.on_answer(response, self.who, self.offsets, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.committer.on_failure(error, now_ms)


class PendingCommit(Operation[None]):
    """Operation that waits for one commit, which has its own time limit."""

    def __init__(self, operations: Operations, commit: Commit) -> None:
        super().__init__(operations)
        self.commit = commit

    def look(self, now_ms: int) -> bool:
        return self.commit.is_done

    def answer(self, now_ms: int) -> None:
        if self.commit.error is not None:
            raise self.commit.error
