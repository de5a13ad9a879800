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
from functools import partial
from types import TracebackType
from typing import Final, Self, Unpack

from tarry.client.core.arguments import check_pattern, names_of, offsets_of, places_of
from tarry.client.core.consumer.handed_out import ConsumerRecord, HandedOut, RecordGroup
from tarry.client.core.group.consumer import GroupView
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.operation import Callback
from tarry.client.core.outgoing import check_topic
from tarry.client.errors import ConcurrentUse, NotSubscribed
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.client.sync.background import Background
from tarry.client.sync.clock import monotonic_ms
from tarry.client.sync.listener import Listener
from tarry.client.sync.places import Place, PlacesReader

log = logging.getLogger("tarry.client")

# An iteration waits without an end, in polls of this length.
ITERATION_SECONDS: Final = 3_600

# Between two records of an iteration the core is turned this often.
TICK_MS: Final = 50


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
        self._listener = listener or Listener()
        self._finalizer = weakref.finalize(self, _abandon, self._driver.background)
        # At the end of the program there is nobody left to tell.
        self._finalizer.atexit = False
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
        offsets = None if what is None else _offsets_of(what)
        self._wait_for(partial(self._core.begin_commit, offsets), timeout)

    def committed(self, places: Iterable[Place], timeout: float | None = None) -> dict[Place, int]:
        """Where the group goes on in each partition; -1 where it never committed."""
        wanted = places_of("committed", places)
        return self._wait_for(partial(self._core.begin_committed, wanted), timeout)

    # --- Records

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> list[RecordGroup]:
        """Records that have come, by partition; empty if none came in `timeout` seconds.

        What was handed out before is finished now.  Raises what stands in the way: an offset out
        of range, a corrupt batch, a group that refuses this member, what a callback raised.
        """
        begin = partial(self._core.begin_poll, max_records or self.settings.poll_records_max)
        with self._exclusive:
            groups = self._driver.perform(begin, timeout, 0, self._call_back)
            if groups:
                # The next fetch leaves before these records are worked on.
                self._driver.nudge()
            return groups

    def _call_back(self, callback: Callback) -> None:
        event = callback.event
        getattr(self._listener, event.callback)(self, list(event.places))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Record after record, without an end until `wakeup`; each is finished when the next one
        is asked for."""
        while (handed_out := self._hand_out(None)) is not None:
            until_ms = monotonic_ms() + TICK_MS
            for record in handed_out.records():
                yield record
                if monotonic_ms() >= until_ms:
                    break

    def batches(self, max_records: int | None = None) -> Iterator[RecordGroup]:
        """Records of one partition at a time, without an end until `wakeup`; finished when the
        next ones are asked for."""
        while (handed_out := self._hand_out(max_records)) is not None:
            until_ms = monotonic_ms() + TICK_MS
            for group in handed_out.batches():
                yield group
                if monotonic_ms() >= until_ms:
                    break

    def _hand_out(self, max_records: int | None) -> HandedOut | None:
        """What the next poll brings, to be yielded one by one; None after a `wakeup`."""
        while True:
            groups = self.poll(ITERATION_SECONDS, max_records)
            if groups:
                return self._core.hand_out(groups)
            if self._core.was_woken:
                return None

    def wakeup(self) -> None:
        """End the poll or iteration under way, or else the next; from any thread."""
        self._core.is_woken = True
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
        self._core.check_not_told("close")
        begin = partial(self._core.begin_close, leave=leave, is_finished=is_finished)
        try:
            if not driver.is_forked:
                with self._exclusive:
                    driver.perform(begin, timeout, self.settings.close_timeout_ms)
        except ConcurrentUse:
            # Another thread polls: it hears that the consumer is closed, and the group does not.
            log.warning("a Consumer was closed while another thread used it; its member times out")
        finally:
            self._finalizer.detach()
            driver.close()

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


def _abandon(background: Background) -> None:
    if background.abandon():
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
