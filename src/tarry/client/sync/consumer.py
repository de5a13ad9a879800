"""Consumer: records of topics shared with a group, or of partitions that one assigns oneself.

with Consumer("orders", group_id="billing", auto_offset_reset="earliest") as consumer:
    for record in consumer:
        bill(record.value)

with Consumer(bootstrap_servers="localhost:9092") as consumer:
    consumer.assign([("orders", 0)])
    consumer.seek_to_beginning()
    for group in consumer.poll(timeout=1.0):
        for record in group.records:
            print(group.topic, group.partition, record.offset, record.value)

Everything happens inside `poll`, or the iteration, which polls: rebalances, callbacks, automatic
commits.  Only the heartbeats of a member have a thread, unless `heartbeat.mode=poll`.
"""

from __future__ import annotations

import logging
import re
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self, Unpack

from tarry.client.core.arguments import (
    check_pattern,
    names_of,
    offsets_of,
    places_of,
)
from tarry.client.core.consumer.core import RecordGroup
from tarry.client.core.group.committer import Commit
from tarry.client.core.group.consumer import GroupView
from tarry.client.core.group.events import ASSIGNED, LOST, REVOKED, GroupEvent
from tarry.client.core.group.offsets import CommittedOffset
from tarry.client.core.outgoing import check_topic
from tarry.client.errors import ConcurrentUse, NotSubscribed
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.client.sync.driver import monotonic_ms
from tarry.client.sync.handed_out import ConsumerRecord, HandedOut
from tarry.client.sync.keeper import Keeper
from tarry.client.sync.listener import Listener
from tarry.client.sync.places import Place, PlacesReader
from tarry.link.errors import ClientError, TimedOut

log = logging.getLogger("tarry.client")

# An iteration waits without an end, in polls of this length.
ITERATION_SECONDS: Final = 3_600

# Between two records of an iteration the core is turned this often.
TICK_MS: Final = 50


# What was raised before and still holds is raised again when nothing else came for so long.
STANDING_MS_MAX: Final = 1_000


class Consumer(PlacesReader):
    """For one thread at a time; only `wakeup` may come from another.

    What stands before the settings is what to subscribe to: names of topics, or one pattern; a
    mapping among them holds settings by Kafka's keys.
    """

    def __init__(
        self,
        *what: str | re.Pattern[str] | Mapping[str, SettingValue] | None,
        listener: Listener | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None:
        for one in what:
            _check_named(one)
        mappings = [one for one in what if isinstance(one, Mapping)]
        given = {key: value for one in mappings for key, value in one.items()}
        super().__init__(ConsumerSettings(given, **arguments))
        self._keeper = Keeper(self._driver, self._core)
        self._listener = listener or Listener()
        self._callback = ""
        self._finalizer = weakref.finalize(self, _abandon, self._keeper)
        # At the end of the program there is nobody left to tell.
        self._finalizer.atexit = False
        self._is_woken = False
        self._was_woken = False
        names = [one for one in what if isinstance(one, str)]
        patterns = [one for one in what if isinstance(one, re.Pattern)]
        try:
            if len(patterns) + bool(names) > 1:
                raise NotSubscribed("subscribe to names or to one pattern, not to both")
            if patterns:
                self.subscribe(patterns[0])
            elif names:
                self.subscribe(names)
        except BaseException:
            self._driver.close()
            raise

    # --- The group

    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: Listener | None = None
    ) -> None:
        """Share these topics, or those whose names the pattern finds, with the group; takes the
        place of what was subscribed before."""
        names: list[str] = []
        if isinstance(topics, re.Pattern):
            check_pattern(topics)
        else:
            names = [topics] if isinstance(topics, str) else names_of("subscribe", topics)
            for name in names:
                check_topic(name)
        with self._told() as core:
            if isinstance(topics, re.Pattern):
                core.subscribe_pattern(topics)
            else:
                core.subscribe(names)
            if listener is not None:
                self._listener = listener

    def unsubscribe(self) -> None:
        """The next poll gives everything back and leaves the group."""
        with self._told() as core:
            core.unsubscribe()

    def subscription(self) -> list[str]:
        """The topics that are subscribed; those that match by now, if it is a pattern."""
        return list(self._core.topics.subscribed)

    def assignment(self) -> list[Place]:
        """The partitions that are read."""
        return list(self._core.fetcher.positions)

    @property
    def group(self) -> GroupView:
        """How this member stands in its group."""
        with self._driver.lock:
            return self._core.view()

    def commit(
        self,
        what: ConsumerRecord | RecordGroup | Mapping[Place, int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit behind this record, behind these records, at these offsets, or behind everything
        that was handed out.  Raises CommitFailed when the partition is not ours any more, or, with
        `is_retriable`, when that is being decided."""
        timeout_ms = self._timeout_ms(timeout)
        named = None if what is None else _offsets_of(what)
        with self._told() as core:
            offsets = core.handed_out_offsets() if named is None else named
            commit = Commit(offsets)
            core.begin_commit(commit, timeout_ms, core.now_ms)
        self._wait_for_commit(commit, timeout_ms)
        if commit.error is not None:
            raise commit.error

    def _wait_for_commit(self, commit: Commit, timeout_ms: int) -> None:
        with self._entered():
            self._driver.wait(lambda: commit.is_done, timeout_ms + 1_000)
            if not commit.is_done:
                commit.end(TimedOut(f"the offsets were not committed within {timeout_ms} ms"))

    def committed(self, places: Iterable[Place], timeout: float | None = None) -> dict[Place, int]:
        """Where the group goes on in each partition; -1 where it never committed."""
        wanted = places_of("committed", places)
        with self._told() as core:
            query = core.ask_committed(wanted)
        with self._entered():
            is_done = self._wait(lambda: query.is_done, timeout)
        with self._driver.lock:
            query.end()
        if not is_done:
            reason = self._core.coordinator.last_error
            because = f": {reason}" if reason is not None else ""
            raise TimedOut(f"the coordinator did not tell the committed offsets in time{because}")
        found: dict[Place, int] = {}
        for place in wanted:
            answer = query.answers[place]
            if isinstance(answer, ClientError):
                raise answer
            found[place] = answer.offset
        return found

    # --- Records

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> list[RecordGroup]:
        """Records that have come, by partition; empty if none came in `timeout` seconds.

        What was handed out before is finished now.  Raises what stands in the way: an offset out
        of range, a corrupt batch, a group that refuses this member, what a callback raised.
        """
        if self._callback:
            raise ConcurrentUse(
                f"poll was called inside {self._callback}, which a poll has called: return instead"
            )
        records_max = max_records or self.settings.poll_records_max
        deadline_ms = monotonic_ms() + int(timeout * 1000)
        with self._entered():
            with self._told() as core:
                core.begin_poll(core.now_ms)
            try:
                return self._poll(records_max, deadline_ms)
            finally:
                with self._driver.lock:
                    self._was_woken, self._is_woken = self._is_woken, False
                    now_ms = monotonic_ms()
                    self._core.end_poll(now_ms)
                    self._keeper.look(now_ms)

    def _poll(self, records_max: int, deadline_ms: int) -> list[RecordGroup]:
        core, driver = self._core, self._driver
        has_waited = False
        while True:
            self._tell_events()
            with driver.lock:
                core.now_ms = monotonic_ms()
                error = core.membership.take_error()
                if error is not None:
                    raise error
                groups = core.take(records_max)
            if groups:
                # The next fetch leaves before these records are worked on.
                driver.nudge()
                return groups
            now_ms = monotonic_ms()
            standing = core.standing_error
            if standing is not None:
                deadline_ms = min(deadline_ms, now_ms + STANDING_MS_MAX)
            left_ms = deadline_ms - now_ms
            if self._is_woken or (has_waited and left_ms <= 0):
                if standing is not None and not self._is_woken:
                    raise standing
                return []
            driver.wait(self._has_news, max(left_ms, 0))
            has_waited = True

    def _has_news(self) -> bool:
        return self._is_woken or self._core.has_news

    def _tell_events(self) -> None:
        """What the group has for the user, one callback after the other."""
        core, driver = self._core, self._driver
        while True:
            with driver.lock:
                core.now_ms = monotonic_ms()
                event = core.begin_event() if core.membership.has_event else None
                self._keeper.look(core.now_ms)
            if event is None:
                return
            try:
                if event.kind == REVOKED and self.settings.auto_commit:
                    self._commit_finished(self.settings.api_timeout_ms)
                self._call_back(event)
            finally:
                with driver.lock:
                    core.now_ms = monotonic_ms()
                    core.end_event()

    def _call_back(self, event: GroupEvent) -> None:
        listener = self._listener
        name, callback = {
            ASSIGNED: ("on_assigned", listener.on_assigned),
            REVOKED: ("on_revoked", listener.on_revoked),
            LOST: ("on_lost", listener.on_lost),
        }[event.kind]
        self._callback = name
        try:
            callback(self, list(event.places))
        finally:
            self._callback = ""

    def _commit_finished(self, timeout_ms: int) -> None:
        """The last commit of partitions that are given up; one that fails is told in the log."""
        with self._driver.lock:
            self._core.now_ms = monotonic_ms()
            commit = self._core.begin_auto_commit(self._core.now_ms)
        self._wait_for_commit(commit, timeout_ms)
        if commit.error is not None:
            log.warning("the last commit failed: %s", commit.error)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Record after record, without an end until `wakeup`; each is finished when the next one
        is asked for."""
        while (handed_out := self._hand_out(None)) is not None:
            yield from handed_out.records(monotonic_ms() + TICK_MS)

    def batches(self, max_records: int | None = None) -> Iterator[RecordGroup]:
        """Records of one partition at a time, without an end until `wakeup`; finished when the
        next ones are asked for."""
        while (handed_out := self._hand_out(max_records)) is not None:
            yield from handed_out.batches(monotonic_ms() + TICK_MS)

    def _hand_out(self, max_records: int | None) -> HandedOut | None:
        """What the next poll brings, to be yielded one by one; None after a `wakeup`."""
        while True:
            groups = self.poll(ITERATION_SECONDS, max_records)
            if groups:
                self._handed_out = HandedOut(groups)
                return self._handed_out
            if self._was_woken:
                return None

    def wakeup(self) -> None:
        """End the poll or iteration under way, or else the next; from any thread."""
        self._is_woken = True
        self._driver.ask_to_leave()

    # --- The end

    def close(self, timeout: float | None = None, *, leave: bool | None = None) -> None:
        """Commit what was handed out (if commits are automatic), leave the group, close.

        Bounded by `close.timeout.ms`.  A static member does not leave, so that it can come back,
        unless `leave` is true.  No callback is called.
        """
        self._close(timeout, leave, is_finished=True)

    def _close(self, timeout: float | None, leave: bool | None, *, is_finished: bool) -> None:
        driver = self._driver
        if driver.is_closed:
            return
        if self._callback:
            raise ConcurrentUse(f"close was called inside {self._callback}; return first")
        try:
            if self._core.has_group and not driver.is_forked:
                self._say_goodbye(timeout, leave, is_finished=is_finished)
        except ConcurrentUse:
            # Another thread polls: it hears that the consumer is closed, and the group does not.
            log.warning("a Consumer was closed while another thread used it; its member times out")
        finally:
            self._finalizer.detach()
            self._keeper.stop()
            driver.close()

    def _say_goodbye(self, timeout: float | None, leave: bool | None, *, is_finished: bool) -> None:
        limit_ms = self.settings.close_timeout_ms if timeout is None else int(timeout * 1000)
        deadline_ms = monotonic_ms() + limit_ms
        with self._told() as core:
            if is_finished:
                core.finish_handed_out()
        if self.settings.auto_commit:
            self._commit_finished(limit_ms)
        with self._told() as core:
            if leave is not False:
                core.leave("the consumer was closed", even_static=leave is True)
        left_ms = max(deadline_ms - monotonic_ms(), 0)
        with self._entered():
            driver, membership = self._driver, self._core.membership
            if not driver.wait(lambda: membership.leaving.is_answered, left_ms):
                log.warning("the coordinator did not answer to the leave within %d ms", limit_ms)

    def __repr__(self) -> str:
        group = f"group {self.settings.group_id}" if self.settings.group_id else "without a group"
        count = len(self.assignment())
        noun = "partition" if count == 1 else "partitions"
        return self._driver.describe(self, f"{group}, {count} {noun}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What was being worked on when the block failed is not finished.
        self._close(None, None, is_finished=error_type is None)


def _abandon(keeper: Keeper) -> None:
    if keeper.abandon():
        warnings.warn("a Consumer was not closed", ResourceWarning, stacklevel=1)


def _offsets_of(
    what: ConsumerRecord | RecordGroup | Mapping[Place, int],
) -> dict[Place, CommittedOffset]:
    if isinstance(what, ConsumerRecord):
        return {(what.topic, what.partition): CommittedOffset(what.offset + 1)}
    if isinstance(what, RecordGroup):
        offset = what.records[-1].offset + 1
        return {(what.topic, what.partition): CommittedOffset(offset)}
    offsets = offsets_of("commit", what)
    return {place: CommittedOffset(offset) for place, offset in offsets.items()}


def _check_named(one: object) -> None:
    """Positional arguments of a consumer."""
    if one is not None and not isinstance(one, (str, re.Pattern, Mapping)):
        raise TypeError(
            'Consumer takes names of topics, such as Consumer("orders", group_id="billing"), or '
            f"one compiled pattern, not {one!r:.60}"
        )
