"""Membership: the member of a group, from its first join to its end.

    Unjoined -> Finding -> Preparing -> Joining -> Syncing -> Stable -> Preparing -> ...
                                                              any     -> Failed

Turns advance the protocol until a user callback has to run; its event (partitions assigned, revoked
or lost) waits until the face asks for it inside a poll.  Only the membership changes the ownership.
A join is sent only while the user polls: without a poll the member keeps its partitions until
`max.poll.interval.ms`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.base.ids import TopicPartition
from tarry.client.core.group import reactions
from tarry.client.core.group.assignment.assignor import Assignor
from tarry.client.core.group.assignment.consumer_protocol import GENERATION_UNKNOWN
from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.events import ASSIGNED, GroupEvent
from tarry.client.core.group.heartbeat import Heartbeat, PollLimit
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.core.group.leaving import Leaving
from tarry.client.core.group.ownership import Ownership
from tarry.client.core.group.refusals import refusal_text
from tarry.client.core.group.round import Joined, JoinRound
from tarry.client.core.group.topics import TopicSubscription
from tarry.client.errors import AssignorFailed, BrokerError, GroupFailed
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.tasks import Task

log = logging.getLogger("tarry.client")

UNJOINED: Final = 0
FINDING: Final = 1
PREPARING: Final = 2
JOINING: Final = 3
SYNCING: Final = 4
STABLE: Final = 5
FAILED: Final = 6

STATE_NAMES: Final = (
    "Unjoined", "Finding", "Preparing", "Joining", "Syncing", "Stable", "Failed",
)  # fmt: skip


class Membership:
    """Membership of one member in one group."""

    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: CoordinatorFinder,
        topics: TopicSubscription,
        assignors: Sequence[Assignor],
    ) -> None:
        self.settings = settings
        self.coordinator = coordinator
        self.topics = topics
        self.round = JoinRound(settings, coordinator, topics, assignors, self)
        self.tasks = coordinator.connections.tasks
        self.is_cooperative = all(one.is_cooperative for one in assignors)
        self.state = UNJOINED
        self.member_id = ""
        self.generation_id = GENERATION_UNKNOWN
        self.protocol_name = ""
        self.is_leader = False
        self.ownership = Ownership()
        # Reason of the next join; empty if none is needed.
        self.join_reason = ""
        self._round_reason = ""
        self._was_member = False
        self.is_polled = False
        self.failure: GroupFailed | None = None
        self.error: ClientError | None = None
        self.confirmed_ms = 0
        self.heartbeat = Heartbeat(settings, coordinator, self)
        self.leaving = Leaving(settings, coordinator)
        self._is_leaving = False
        self._has_gap = False
        self._turned_ms = -1
        self._pauses = coordinator.connections.pauses()
        self._session = Task(self._on_session_over)
        self.poll_limit = PollLimit(settings, self.tasks, self._on_poll_limit)
        coordinator.when_lost = self._on_coordinator_lost
        coordinator.when_refused = self._on_unfound

    # --- What the user wants

    @property
    def is_wanted(self) -> bool:
        """True if the consumer is subscribed, so that it must be a member."""
        return self.topics.is_subscribed

    @property
    def is_joining(self) -> bool:
        """True while the coordinator's own connection waits for a join or a sync."""
        return self.state in (JOINING, SYNCING)

    @property
    def is_busy(self) -> bool:
        """True while an answer must not wait for the next poll: an answer of the coordinator, or of
        the search for the coordinator."""
        if self.heartbeat.in_flight or self.is_joining:
            return True
        return self.state == FINDING and self.generation_id >= 0

    @property
    def next_due_ms(self) -> int | None:
        """Time at which the membership needs a turn outside a poll, on the monotonic clock; the
        time of the last turn, so a turn is due, while `is_busy`."""
        if self.is_busy:
            return self._turned_ms
        tasks = [self._session, self.poll_limit.task]
        due = [task.deadline_ms for task in tasks if task.is_armed]
        if self.heartbeat.due_ms is not None:
            due.append(self.heartbeat.due_ms)
        return min(due, default=None)

    def want_join(self, reason: str) -> None:
        """Join again as soon as possible."""
        self._is_leaving = False
        self.join_reason = self.join_reason or reason

    def want_leave(self) -> None:
        """Leave the group after the next poll, in which the member gives back what it owns: the
        user has unsubscribed."""
        self._is_leaving = True
        self.join_reason = ""
        self.ownership.to_give = list(self.owned)

    def begin_poll(self) -> None:
        self.is_polled = True
        self.poll_limit.end()

    def end_poll(self, now_ms: int) -> None:
        """End a poll: the user has records to work on, and a limited time until the next poll."""
        self.is_polled = False
        self._limit_user(now_ms, "")

    def begin_callback(self, name: str, now_ms: int) -> None:
        """Begin a callback inside a poll: its time limit is that between two polls."""
        self._limit_user(now_ms, name)

    def end_callback(self) -> None:
        """End a callback: the poll continues."""
        self.poll_limit.end()

    def _limit_user(self, now_ms: int, callback: str) -> None:
        is_member = bool(self.member_id) or self.is_joining
        if self.settings.has_keeper and is_member and self.is_wanted:
            self.poll_limit.begin(now_ms, callback)

    def may_hand_out(self, now_ms: int) -> bool:
        """Return true if the member still owns its partitions, as far as the member can know: after
        a pause longer than a session it must wait for the coordinator."""
        ownership = self.ownership
        if ownership.event is not None or ownership.is_lost or self.failure is not None:
            return False
        session_ms = self.settings.session_timeout_ms
        if self._has_gap or now_ms - self._turned_ms > session_ms:
            return False
        if not self.owned or self.is_joining:
            return True
        return now_ms - self.confirmed_ms <= session_ms

    # --- What the user hears

    @property
    def owned(self) -> list[TopicPartition]:
        """Partitions that the user owns by the last event."""
        return self.ownership.owned

    @property
    def has_event(self) -> bool:
        return self.ownership.event is None and self.ownership.next() is not None

    def begin_event(self) -> GroupEvent | None:
        """Begin the next event for the user; the round stops until `end_event`."""
        return self.ownership.begin(self.generation_id)

    def end_event(self) -> None:
        """End the event after its callback."""
        ownership = self.ownership
        was_assigned = ownership.event is not None and ownership.event.kind == ASSIGNED
        ownership.end()
        if was_assigned and ownership.gave_up:
            ownership.gave_up = False
            self.want_join("partitions were given up for others")

    def _to_give_before_join(self) -> list[TopicPartition]:
        if not self.is_cooperative:
            return list(self.owned)
        wanted = self.topics.subscribed
        return [place for place in self.owned if place[0] not in wanted]

    # --- Turns

    def work(self, now_ms: int) -> None:
        """Advance the rebalance until a user callback has to run."""
        gap_ms = now_ms - self._turned_ms
        if self._turned_ms >= 0 and gap_ms > self.settings.session_timeout_ms and self.owned:
            self._has_gap = True
        self._turned_ms = now_ms
        if self.failure is not None or self.ownership.is_lost:
            return
        is_telling = self.ownership.event is not None
        if self._is_leaving:
            self.ownership.to_give = list(self.owned)
            if not self.owned and not is_telling:
                self._leave_now(now_ms)
        elif self.is_wanted and not self.coordinator.is_known:
            self.state = FINDING
            self.coordinator.want(now_ms)
        elif self.is_wanted and is_telling:
            self._keep_session(now_ms)
        elif self.is_wanted:
            self._look_at_topics()
            self._advance(now_ms)

    def _look_at_topics(self) -> None:
        change = self.topics.change(is_leader=self.is_leader and self.state == STABLE)
        if change:
            self.want_join(change)

    def _advance(self, now_ms: int) -> None:
        self._keep_session(now_ms)
        if self.state in (UNJOINED, FINDING):
            self._prepare(self.join_reason or "the member is new")
        if self.state == STABLE and self.join_reason and self.ownership.target is None:
            self._prepare(self.join_reason)
        if self.state == PREPARING:
            self._join_if_ready(now_ms)
        elif self.state == SYNCING:
            self.round.work(now_ms)

    def _prepare(self, reason: str) -> None:
        self.state = PREPARING
        self.join_reason = reason

    def _join_if_ready(self, now_ms: int) -> None:
        self.ownership.to_give = self._to_give_before_join()
        if self.ownership.to_give or not self.is_polled or not self.topics.is_known:
            # The round continues in the poll whose callbacks have given these partitions back.
            return
        if not self._pauses.holds(now_ms):
            self._join(now_ms)

    def _keep_session(self, now_ms: int) -> None:
        """Keep the session of a generation alive with heartbeats while the coordinator moves, or
        until the next poll begins a new round.  The answer to the first heartbeat shows whether the
        session still holds."""
        if self.generation_id < 0 or self.state not in (FINDING, PREPARING):
            return
        if self.state == FINDING:
            self.state = PREPARING if self.join_reason else STABLE
        if not self.heartbeat.is_on:
            self.heartbeat.beat_now(now_ms)

    def identity(self) -> GroupIdentity:
        """Return the identity for requests to the coordinator; the member id is empty without a
        subscription."""
        group_id, instance_id = self.settings.group_id, self.settings.instance_id
        return GroupIdentity(group_id, self.member_id, instance_id, self.generation_id)

    # --- Rounds

    def _join(self, now_ms: int) -> None:
        self._round_reason = self.join_reason
        if now_ms - self.confirmed_ms > self.settings.session_timeout_ms:
            # The session may have ended meanwhile: the answer to the join will show it.
            self._has_gap = True
        self.state = JOINING
        self.join_reason = ""
        self.heartbeat.stop()
        self.tasks.cancel(self._session)
        # A new member needs no reason; `groups why` shows the reason of a rejoin.
        reason = self._round_reason if self._was_member else ""
        self.round.join(self.owned, self.ownership.generation_id, reason, now_ms)

    def on_member_id(self, member_id: str, now_ms: int) -> None:
        """Join again with the member id that the coordinator has assigned."""
        self.member_id = member_id
        self.join_reason = self._round_reason
        self._join(now_ms)

    def on_generation(self, joined: Joined) -> None:
        self._pauses.failures = 0
        self._was_member = True
        self.member_id = joined.member_id
        self.generation_id = joined.generation_id
        self.protocol_name = joined.protocol_name
        self.is_leader = joined.is_leader
        self.state = SYNCING

    def on_assignment(self, places: list[TopicPartition], now_ms: int) -> None:
        self.state = STABLE
        self.ownership.target = places
        self._has_gap = False
        self._confirm(now_ms)
        self.heartbeat.begin(now_ms)
        log.info(
            "group %s: member %s of generation %d%s has %d %s",
            self.settings.group_id, self.member_id, self.generation_id,
            ", its leader," if self.is_leader else "",
            len(places), "partition" if len(places) == 1 else "partitions",
        )  # fmt: skip

    def on_failed(self, error: ClientError, now_ms: int) -> None:
        """Handle a join or sync that failed, or whose answer could not be read."""
        if not error.is_retriable:
            self.error = error
        self.coordinator.lose(str(error), now_ms)
        self._rejoin("a round ended without an answer")
        self._pauses.begin(now_ms)

    def on_assignor_failed(self, error: AssignorFailed, now_ms: int) -> None:
        self.error = error
        self._rejoin("an assignor failed")
        self._pauses.begin(now_ms)

    def on_refused(self, api: str, code: int, now_ms: int) -> None:
        reaction = reactions.reaction_to(code)
        reason = f"{api}: {error_name(code)}"
        if reaction == reactions.FATAL:
            self._fail(code, api, now_ms)
        elif reaction == reactions.FIND:
            self.coordinator.lose(reason, now_ms)
        elif reaction in (reactions.DROP_MEMBER, reactions.DROP_GENERATION):
            self._drop(reason, forget_id=reaction == reactions.DROP_MEMBER)
            if self._pauses.failures > 0:
                self._pauses.begin(now_ms)
            self._pauses.failures += 1
        else:
            if reaction == reactions.FAIL:
                self.error = self._refusal(api, code)
            self._rejoin(reason)
            self._pauses.begin(now_ms)

    def _rejoin(self, reason: str) -> None:
        """Abandon the round and join again; partitions that were given back stay given back."""
        self.round.abandon()
        if self.failure is None:
            self.state = PREPARING if self.coordinator.is_known else FINDING
            self.join_reason = reason

    # --- Beating

    def may_beat(self) -> bool:
        return self.coordinator.is_known and self.state in (STABLE, PREPARING)

    def on_beat_failed(self, error: ClientError, who: GroupIdentity, now_ms: int) -> None:
        if who == self.identity():
            self.coordinator.lose(str(error), now_ms)

    def on_beat(self, code: int, who: GroupIdentity, now_ms: int) -> None:
        """Handle the answer to a heartbeat; ignore it if the heartbeat was sent for an earlier
        generation."""
        if who != self.identity() or self.state not in (STABLE, PREPARING):
            return
        reaction = reactions.reaction_to(code)
        reason = f"Heartbeat: {error_name(code)}"
        if code in (errors.NONE, errors.REBALANCE_IN_PROGRESS):
            # Both codes confirm the session.
            self._has_gap = False
            self._confirm(self.heartbeat.sent_ms)
        if code == errors.REBALANCE_IN_PROGRESS and self.state == STABLE:
            self.want_join("others join or leave the group")
        elif reaction == reactions.FIND:
            self.coordinator.lose(reason, now_ms)
        elif reaction == reactions.DROP_MEMBER:
            self._drop(reason, forget_id=True)
        elif reaction == reactions.DROP_GENERATION:
            self._drop(reason, forget_id=False)
        elif reaction == reactions.FATAL:
            self._fail(code, "Heartbeat", now_ms)
        elif reaction in (reactions.FAIL, reactions.TAKE_ID) and code != errors.NONE:
            self.error = self._refusal("Heartbeat", code)

    def _confirm(self, then_ms: int) -> None:
        """Note that the coordinator confirmed the member at that time."""
        self.confirmed_ms = max(self.confirmed_ms, then_ms)
        self.tasks.schedule(self._session, self.confirmed_ms + self.settings.session_timeout_ms)

    def _on_session_over(self, now_ms: int) -> None:
        """Lose the coordinator if no heartbeat has succeeded for a session.  After a suspension of
        the process none was tried: send one now, and give it a session's time."""
        if self.state not in (STABLE, PREPARING):
            return
        heartbeat, session_ms = self.heartbeat, self.settings.session_timeout_ms
        if not heartbeat.in_flight:
            heartbeat.beat_now(now_ms)
        since_ms = heartbeat.sent_ms if heartbeat.in_flight else now_ms
        if now_ms - since_ms < session_ms:
            self.tasks.schedule(self._session, since_ms + session_ms)
        else:
            self.coordinator.lose(f"no heartbeat succeeded for {session_ms} ms", now_ms)

    def _on_coordinator_lost(self, reason: str, now_ms: int) -> None:
        """Keep the generation: the next coordinator may know the member."""
        if self.is_joining:
            self._rejoin("the coordinator moved")
        if self.state not in (UNJOINED, FAILED):
            self.state = FINDING
        self.heartbeat.stop()

    # --- Losing, failing, leaving

    def on_commit_refused(self, code: int, who: GroupIdentity, now_ms: int) -> None:
        """Handle the consequence of a refused commit for the membership."""
        if who != self.identity():
            return
        reaction = reactions.reaction_to(code)
        reason = f"OffsetCommit: {error_name(code)}"
        if reaction == reactions.REJOIN and self.state == STABLE:
            self.want_join(reason)
        elif self.is_joining:
            return
        elif reaction == reactions.DROP_MEMBER:
            self._drop(reason, forget_id=True)
        elif reaction == reactions.DROP_GENERATION:
            self._drop(reason, forget_id=False)
        elif reaction == reactions.FATAL:
            self._fail(code, "OffsetCommit", now_ms)

    def _drop(self, reason: str, *, forget_id: bool) -> None:
        """Drop the generation, because the coordinator has removed the member."""
        if self.generation_id >= 0:
            log.warning(
                "group %s: member %s lost generation %d: %s",
                self.settings.group_id, self.member_id, self.generation_id, reason,
            )  # fmt: skip
        self._forget(reason, forget_id=forget_id)

    def _forget(self, reason: str, *, forget_id: bool) -> None:
        """Forget the generation; its partitions belong to other members now."""
        self.round.abandon()
        self.ownership.lose()
        self.generation_id = GENERATION_UNKNOWN
        if forget_id:
            self.member_id = ""
        self.state = UNJOINED
        self.join_reason = reason
        self.heartbeat.stop()
        self.tasks.cancel(self._session)

    def _fail(self, code: int, api: str, now_ms: int) -> None:
        self._drop(f"{api}: {error_name(code)}", forget_id=False)
        self.state = FAILED
        names = ", ".join(self.round.assignors)
        text = refusal_text(self.settings, code, names, self.round.others_have)
        self.failure = GroupFailed(code, text)

    def _on_unfound(self, code: int, now_ms: int) -> None:
        """Fail the membership, or raise an error, because no broker names a coordinator."""
        if reactions.reaction_to(code) == reactions.FATAL:
            self._fail(code, "FindCoordinator", now_ms)
        else:
            self.error = self._refusal("FindCoordinator", code)

    def _refusal(self, api: str, code: int) -> ClientError:
        return BrokerError(code, f"group {self.settings.group_id}: {api} was refused")

    def take_error(self) -> ClientError | None:
        """Take the error for the next poll; a fatal error stays."""
        if self.failure is not None:
            is_told = not self.has_event and self.ownership.event is None
            return self.failure if is_told else None
        error = self.error
        self.error = None
        return error

    def _on_poll_limit(self, reason: str, now_ms: int) -> None:
        self.leave(reason, now_ms)
        self._forget(reason, forget_id=True)

    def _leave_now(self, now_ms: int) -> None:
        self._is_leaving = False
        self.leave("the subscription ended", now_ms)
        self._forget("the subscription ended", forget_id=True)
        self.join_reason = ""
        self._was_member = False

    def leave(self, reason: str, now_ms: int, *, even_static: bool = False) -> None:
        """Send a leave without waiting for its answer.  A static member sends none: it may come
        back, and its session ends by itself if it does not."""
        is_static = self.settings.instance_id is not None and not even_static
        if is_static or not self.member_id or not self.coordinator.is_known:
            return
        if self.is_joining:
            self.round.abandon()
            self.coordinator.reopen(now_ms)
        self.heartbeat.stop()
        self.leaving.send(self.identity(), reason, now_ms)
