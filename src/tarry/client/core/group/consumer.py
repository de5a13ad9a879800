"""The core of a consumer with a group: the membership assigns partitions, commits say where to
begin.

Without `group.id` it acts as the plain consumer.  With `group.id` and `assign`, it commits and
reads offsets of the group without being a member.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from tarry.base.doors import Random
from tarry.base.ids import TopicPartition
from tarry.client.core.arguments import places_of, records_max_of, topics_of
from tarry.client.core.consumer.column_taker import ColumnTaker, RowRun
from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.group.assignment.assignor import Assignor
from tarry.client.core.group.assignment.assignors import choose_assignors
from tarry.client.core.group.closing import Closing
from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.events import EVENT_NAMES, LOST, REVOKED, GroupEvent
from tarry.client.core.group.identity import GroupView
from tarry.client.core.group.membership import FINDING, STATE_NAMES, Membership
from tarry.client.core.group.offsets.commit import (
    Commit,
    CommitCallback,
    CommitWithCallback,
    UnattendedCommit,
)
from tarry.client.core.group.offsets.committed import (
    CommittedAnswer,
    CommittedOffsets,
    CommittedQuery,
)
from tarry.client.core.group.offsets.committer import Committer, PendingCommit
from tarry.client.core.group.offsets.requests import NO_OFFSET, CommittedOffset
from tarry.client.core.group.offsets.what import (
    CommitWhat,
    finish_before,
    handed_out_offsets,
    offset_behind,
    offsets_behind,
    with_epochs,
)
from tarry.client.core.group.poll import Group, Poll
from tarry.client.core.group.round import WHOEVER
from tarry.client.core.group.topics import TopicSubscription
from tarry.client.core.operation import UserEvent
from tarry.client.errors import ClientClosed, ConcurrentUse, NotSubscribed
from tarry.client.metrics import ConsumerMetrics, PlaceMetrics
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.tasks import Task

log = logging.getLogger("tarry.client")

UNKNOWN: Final = -1

NOTHING_READ: Final = "nothing is subscribed or assigned: call subscribe or assign"

# A user who polls again this soon reads the answer in the poll, without a thread switch.
GRACE_MS: Final = 50


class GroupConsumerCore(ConsumerCore):
    """Core of a consumer with a group.  Polls, commits and the close are operations; calls in
    between take effect with the next poll."""

    def __init__(
        self,
        settings: ConsumerSettings,
        random: Random,
        now_ms: int,
        assignors: Sequence[Assignor | str] | None = None,
    ) -> None:
        """`assignors` take the place of `partition.assignment.strategy`."""
        super().__init__(settings, random, now_ms)
        chosen = choose_assignors(settings.assignors, assignors)
        self.metadata.excludes_internal = settings.excludes_internal_topics
        self.coordinator = CoordinatorFinder(self.connections, settings.group_id)
        self.topics = TopicSubscription(self.metadata, settings.rack)
        self.membership = Membership(settings, self.coordinator, self.topics, chosen)
        timeout_ms = settings.request_timeout_ms
        self.committer = Committer(self.coordinator, self.membership, timeout_ms)
        self.committed_offsets = CommittedOffsets(self.coordinator, self.membership, timeout_ms)
        self._auto_commit = Task(self._on_auto_commit)
        self._is_auto_due = False
        # Time at which the last poll began; -1 if there was none.
        self._polled_ms = UNKNOWN
        # Event of the callback that is running; None if no callback runs.
        self.told: UserEvent | None = None
        # True if the user wants the present or next poll to return; set from any thread.
        self.is_woken = False
        # True if the last poll was woken.
        self.was_woken = False

    @property
    def has_group(self) -> bool:
        return bool(self.consumer_settings.group_id)

    def view(self) -> GroupView:
        membership = self.membership
        return GroupView(
            self.consumer_settings.group_id,
            membership.member_id,
            membership.generation_id,
            STATE_NAMES[membership.state],
            membership.protocol_name,
            membership.is_leader,
            self.coordinator.trouble,
        )

    def metrics(self, now_ms: int) -> ConsumerMetrics:
        """Return a snapshot of the consumer's counters and positions."""
        fetcher, committer, membership = self.fetcher, self.committer, self.membership
        confirmed_ms = membership.confirmed_ms
        return ConsumerMetrics(
            records=fetcher.records,
            bytes=fetcher.bytes,
            fetches=fetcher.fetches,
            places={
                place: PlaceMetrics(position.position, position.lag)
                for place, position in fetcher.positions.items()
            },
            rebalances=membership.ownership.assignments,
            commits=committer.taken,
            commits_failed=committer.failed,
            poll_age_ms=UNKNOWN if self._polled_ms < 0 else now_ms - self._polled_ms,
            heartbeat_age_ms=UNKNOWN if confirmed_ms <= 0 else now_ms - confirmed_ms,
            connections=self.connections.metrics(now_ms),
        )

    # --- What is read

    def subscribe(self, topics: Iterable[str] | re.Pattern[str]) -> None:
        """Subscribe with the group to these topics, or to all topics that the pattern finds, now
        and later."""
        wanted = topics_of("subscribe", topics)
        self._require_group()
        if isinstance(wanted, re.Pattern):
            self.topics.subscribe_pattern(wanted)
            self.want_refresh()
        else:
            self.topics.subscribe(wanted)
            self.track_only(self.topics_in_use())
        if wanted:
            self.membership.want_join("the subscription changed")
        else:
            self.unsubscribe()

    def unsubscribe(self) -> None:
        """Subscribe to nothing: the next poll revokes the owned partitions and leaves the group."""
        self.topics.subscribe([])
        self.membership.want_leave()

    def _require_group(self) -> None:
        if not self.has_group:
            raise NotSubscribed(
                "subscribing needs a group.id; to read without a group, use assign()"
            )
        if self.fetcher.positions and not self.topics.is_subscribed and not self.membership.owned:
            raise NotSubscribed("this consumer has assigned partitions; use subscribe or assign")

    def assign(self, places: Iterable[TopicPartition]) -> None:
        wanted = places_of("assign", places)
        if self.topics.is_subscribed:
            raise NotSubscribed("this consumer is subscribed to topics; unsubscribe first")
        super().assign(wanted)

    def _read_only(self, places: list[TopicPartition]) -> None:
        """Read the partitions that the membership owns, and no others."""
        super().assign(places)
        for place in list(self.committer.committed):
            if place not in self.fetcher.positions:
                del self.committer.committed[place]

    def topics_in_use(self) -> list[str]:
        return [*super().topics_in_use(), *self.topics.in_use]

    def cancel(self, question: object) -> None:
        super().cancel(question)
        self.committed_offsets.cancel(question)

    def begin_at(self, place: TopicPartition, position: PartitionPosition) -> None:
        if self.has_group:
            position.question = self.committed_offsets.ask(place, self._on_committed)
        else:
            self.reset(position)

    def _on_committed(self, place: TopicPartition, answer: CommittedAnswer, now_ms: int) -> None:
        position = self.position(place)
        position.question = None
        if isinstance(answer, ClientError):
            position.fail(answer)
        elif answer.offset == NO_OFFSET:
            self.reset(position)
        else:
            # With a leader epoch, the leader is asked whether its log still holds this position.
            position.seek(answer.offset, answer.leader_epoch)
            self.committer.committed[place] = answer.offset

    @property
    def reads_nothing(self) -> bool:
        """True if nothing is subscribed or assigned, so that no poll ever brings a record."""
        is_member = self.topics.is_subscribed or bool(self.membership.owned)
        return not is_member and not self.fetcher.positions

    def trouble(self, now_ms: int) -> str:
        """Return also why the group's coordinator cannot be found or reached."""
        if self.reads_nothing:
            return NOTHING_READ
        trouble = super().trouble(now_ms)
        if trouble or not self.has_group:
            return trouble
        error = self.coordinator.last_error
        if error is not None:
            return str(error)
        return self.coordinator.trouble if self.membership.state == FINDING else ""

    # --- Turns

    def work(self, now_ms: int) -> None:
        if self.has_group:
            self._arm_auto_commit(now_ms)
            self.committer.work(now_ms)
        super().work(now_ms)
        if self.has_group:
            if self.committer.is_idle:
                # Read after pending commits, so that the answer includes a commit the user did not
                # wait for.
                self.committed_offsets.work(now_ms)
            self.membership.work(now_ms)
            self._follow_metadata()

    def _follow_metadata(self) -> None:
        """Track the topics that a pattern found or that the group's leader needs."""
        in_use = self.topics.in_use
        if any(name not in self.metadata.topics for name in in_use):
            self.track_only(self.topics_in_use())

    # --- Polls

    def begin_poll(
        self, records_max: int | None, timeout_ms: int, now_ms: int
    ) -> Poll[RecordGroup[Any, Any]]:
        """Begin a poll: it calls back the user for events, and takes records (None:
        `max.poll.records`); the records of the poll before are finished."""
        wanted = records_max_of(records_max, self.consumer_settings.poll_records_max)
        return self._begin_poll(partial(self.take, wanted), timeout_ms, now_ms)

    def begin_columns(self, taker: ColumnTaker, timeout_ms: int, now_ms: int) -> Poll[RowRun]:
        """Begin a poll that takes rows of columns."""
        return self._begin_poll(partial(self.take_columns, taker), timeout_ms, now_ms)

    def _begin_poll(
        self, take: Callable[[int], list[Group]], timeout_ms: int, now_ms: int
    ) -> Poll[Group]:
        self.check_not_told("poll")
        if self.operations.ends_ms is not None:
            # Another task may have closed the client before this one polled.
            raise ClientClosed("the client was closed")
        self._polled_ms = now_ms
        self.take_back()
        self.finish_handed_out()
        if self.has_group:
            self.membership.begin_poll()
            if self._is_auto_due and self.committer.is_idle:
                # If this commit fails, the next one includes its offsets.
                self._is_auto_due = False
                group_id = self.consumer_settings.group_id
                commit = UnattendedCommit(self.finished_offsets(), "an automatic commit", group_id)
                self._commit(commit, self.consumer_settings.api_timeout_ms, now_ms)
        return self.operations.begin(Poll(self, take), timeout_ms, now_ms)

    def check_reads(self) -> None:
        """Raise NotSubscribed if an endless wait for records could never end."""
        if self.reads_nothing and not self.is_woken:
            raise NotSubscribed(NOTHING_READ)

    def check_not_told(self, what: str) -> None:
        """Raise ConcurrentUse if the user calls this method inside a callback."""
        event = self.told
        if event is not None:
            raise ConcurrentUse(
                f"{what} was called inside {event.callback}, which a poll or close has called: "
                "return first"
            )

    def check_not_assigning(self, asked_by: int = WHOEVER) -> None:
        """Raise ConcurrentUse if an assignor calls the consumer that it assigns for."""
        if self.membership.round.assigned_by == asked_by:
            raise ConcurrentUse(
                "an assignor has called the consumer that it assigns for: it has to be a plain "
                "function of its arguments"
            )

    def end_poll(self, now_ms: int) -> None:
        """End a poll: the user works on its records now."""
        self.was_woken, self.is_woken = self.is_woken, False
        if self.has_group:
            # A user whose polls never wait can join the group here, between two polls.
            self.membership.work(now_ms)
            self.membership.end_poll(now_ms)

    def has_news(self, now_ms: int) -> bool:
        """Return true if a poll has a callback to call, records to return, or an error to raise."""
        membership = self.membership
        if self.committer.outcomes or membership.has_event:
            return True
        if membership.error is not None or membership.failure is not None:
            return True
        return self.has_records(now_ms)

    def has_records(self, now_ms: int) -> bool:
        may = not self.membership.is_wanted or self.membership.may_hand_out(now_ms)
        return may and super().has_records(now_ms)

    def take(self, records_max: int, now_ms: int) -> list[RecordGroup[Any, Any]]:
        if not self.has_records(now_ms):
            return []
        return super().take(records_max, now_ms)

    def take_columns(self, taker: ColumnTaker, now_ms: int) -> list[RowRun]:
        if not self.has_records(now_ms):
            return []
        return super().take_columns(taker, now_ms)

    def begin_event(self) -> UserEvent | None:
        """Begin the next event for the user, or return None; `end_event` ends it."""
        if self.committer.outcomes:
            return self.committer.outcomes.popleft()
        return self._begin_group_event()

    def begin_last_event(self) -> GroupEvent | None:
        """Begin the event that revokes or loses all partitions at the close."""
        self.membership.ownership.give_all()
        return self._begin_group_event()

    def _begin_group_event(self) -> GroupEvent | None:
        event = self.membership.begin_event()
        if event is None:
            return None
        log.info(
            "group %s: %s %s", self.consumer_settings.group_id, EVENT_NAMES[event.kind],
            ", ".join(f"{topic} [{index}]" for topic, index in event.places) or "nothing",
        )  # fmt: skip
        if event.kind != REVOKED:
            self._read_only(self.membership.owned)
        if event.kind == LOST:
            self._is_auto_due = False
            self.committer.give_up(event.places)
        return event

    def begin_callback(self, event: UserEvent) -> None:
        """Begin a callback: methods that a callback may not call are refused until its end."""
        self.told = event

    def end_callback(self) -> None:
        """End the callback that is running, if any."""
        self.told = None

    def end_event(self) -> None:
        """End the event of the group that the user was called back for, if any."""
        event = self.membership.ownership.event
        if event is not None:
            if event.kind == REVOKED:
                self.committer.give_up(event.places)
            self.membership.end_event()
            self._read_only(self.membership.owned)

    # --- Commits

    def _arm_auto_commit(self, now_ms: int) -> None:
        """Arm the timer of the next automatic commit."""
        settings = self.consumer_settings
        if settings.auto_commit and self.fetcher.positions and not self._auto_commit.is_armed:
            self.tasks.schedule(self._auto_commit, now_ms + settings.auto_commit_interval_ms)

    def _on_auto_commit(self, now_ms: int) -> None:
        """Mark an automatic commit as due: the next poll commits the finished offsets."""
        self._is_auto_due = True

    def begin_auto_commit(self, now_ms: int) -> Commit:
        """Begin a commit of the finished offsets; the caller need not wait for it."""
        commit = Commit(self.finished_offsets())
        self._commit(commit, self.consumer_settings.api_timeout_ms, now_ms)
        return commit

    def _commit(self, commit: Commit, timeout_ms: int, now_ms: int) -> None:
        self.committer.begin(commit, self.operations.limited(timeout_ms, now_ms), now_ms)
        if self.operations.ends_ms is not None:
            # Send a commit of the close at once, even if its time is up.
            self.committer.work(now_ms)

    def finished_offsets(self) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets that are finished and not committed yet."""
        known = self.committer.committed
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for place, position in self.fetcher.positions.items():
            if self.metadata.is_denied(position.topic):
                # The topic was deleted; another one may have its name when the commit arrives.
                continue
            if position.finished >= 0 and known.get(place) != position.finished:
                offsets[place] = offset_behind(position, position.finished)
        return offsets

    def begin_commit(self, what: CommitWhat, timeout_ms: int, now_ms: int) -> PendingCommit:
        """Begin a commit: behind a record, behind records, at offsets, or (None) behind all records
        that were handed out."""
        commit = Commit(self._offsets_to_commit(what))
        finish_before(commit.offsets, self.fetcher.positions)
        self._commit(commit, timeout_ms, now_ms)
        return self.operations.begin(PendingCommit(self.operations, commit), None, now_ms)

    def commit_async(self, what: CommitWhat, callback: CommitCallback | None, now_ms: int) -> None:
        """Commit like `begin_commit`, without an operation; the next poll or close calls the
        callback with the outcome."""
        if callback is not None and not callable(callback):
            raise TypeError(
                "commit_async takes a function of the offsets and the error as its callback, not "
                f"{callback!r:.60}"
            )
        offsets = self._offsets_to_commit(what)
        commit: Commit
        if callback is None:
            group_id = self.consumer_settings.group_id
            commit = UnattendedCommit(offsets, "an asynchronous commit", group_id)
        else:
            commit = CommitWithCallback(offsets, callback, self.committer.outcomes)
        finish_before(offsets, self.fetcher.positions)
        self._commit(commit, self.consumer_settings.api_timeout_ms, now_ms)

    def _offsets_to_commit(self, what: CommitWhat) -> dict[TopicPartition, CommittedOffset]:
        offsets = None if what is None else offsets_behind(what)
        self._require_committing()
        self.take_back()
        if offsets is None:
            return handed_out_offsets(self.fetcher.positions)
        return with_epochs(what, offsets, self.fetcher.positions)

    def begin_committed(
        self, places: Iterable[TopicPartition], timeout_ms: int, now_ms: int
    ) -> CommittedQuery:
        """Look up the committed offsets of the group, without moving the positions."""
        wanted = places_of("committed", places)
        self._require_committing()
        query = CommittedQuery(self.operations, self.committed_offsets, wanted)
        return self.operations.begin(query, timeout_ms, now_ms)

    def _require_committing(self) -> None:
        if not self.has_group:
            raise NotSubscribed("committing needs a group.id: offsets are kept by group")

    # --- The end

    def begin_close(self, timeout_ms: int, now_ms: int, *, leave: bool | None) -> Closing:
        """Begin a close: revoke the partitions, commit finished offsets, and leave the group.  A
        static member leaves only if `leave` is true."""
        self.check_not_told("close")
        self.take_back()
        closing = Closing(self, leaves=leave is not False, even_static=leave is True)
        self.operations.begin(closing, timeout_ms, now_ms)
        self.operations.ends_ms = now_ms + timeout_ms
        return closing

    # --- Turns while no user waits

    @property
    def keeper_due_ms(self) -> int | None:
        """Time of the next turn that is needed for a heartbeat or the limit between two polls, on
        the monotonic clock; None during a poll, which takes turns itself."""
        membership = self.membership
        # During a callback the poll takes no turns.
        is_driven = membership.is_polled and self.told is None
        return None if is_driven else membership.next_due_ms

    @property
    def unattended_due_ms(self) -> int | None:
        due_ms = self.keeper_due_ms
        if due_ms is None or not self.consumer_settings.has_keeper:
            return None
        return due_ms + GRACE_MS if self.membership.is_busy else due_ms

    def needs_turns(self, now_ms: int) -> bool:
        due_ms = self.keeper_due_ms
        return due_ms is not None and due_ms <= now_ms

    def close(self, now_ms: int) -> None:
        self.coordinator.close()
        super().close(now_ms)

    def leave(self, reason: str, now_ms: int, *, even_static: bool) -> None:
        self.membership.leave(reason, now_ms, even_static=even_static)
