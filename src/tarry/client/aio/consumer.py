"""Consumer for asyncio: records of topics shared with a group, or of assigned partitions.

    async with Consumer("orders", group_id="billing", auto_offset_reset="earliest") as consumer:
        async for record in consumer:
            await bill(record.value)

Rebalances, callbacks and automatic commits happen inside `poll`, or inside the iteration, which
polls.  Heartbeats continue while the loop's body awaits something.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

from tarry.base.errors import InvalidSetting
from tarry.base.ids import TopicPartition
from tarry.client.aio.driver import LoopDriver, awaited
from tarry.client.aio.listener import Listener
from tarry.client.codecs import Codec, Key, Value
from tarry.client.core.arguments import (
    check_listener,
    consumer_arguments,
    places_of,
    timeout_ms_of,
    times_of,
)
from tarry.client.core.consumer.decoding import decoding_of
from tarry.client.core.consumer.handed_out import HandedOut
from tarry.client.core.consumer.lookup import EARLIEST, LATEST
from tarry.client.core.consumer.record_group import ConsumerRecord, RecordGroup
from tarry.client.core.group.assignment.assignor import Assignor
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.offsets.commit import CommitCallback
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.group.offsets.what import CommitWhat
from tarry.client.core.operation import Answer, Callback
from tarry.client.errors import ConcurrentUse
from tarry.client.face.chance import SystemRandom
from tarry.client.face.consumer import ConsumerFace
from tarry.client.face.driver import Begin
from tarry.client.face.iteration import PiecesForATick
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.link.errors import TimedOut

if TYPE_CHECKING:
    from datetime import timedelta

    from tarry.client.aio.deferrals import LoopDeferrals
    from tarry.client.aio.receipt import Receipt

Piece = TypeVar("Piece")


What = str | re.Pattern[str] | Mapping[str, SettingValue] | None


class Consumer(ConsumerFace, Generic[Key, Value]):
    """Consumer for the tasks of one event loop, of which one polls at a time.

    What stands before the settings is what to subscribe to: names of topics, or one pattern; a
    mapping among them holds settings by Kafka's keys.  `assignors` are a user's own, or names, the
    preferred one first; they take the place of `partition.assignment.strategy`.  Keys and values
    are bytes unless `key` and `value` are codecs.
    """

    _driver: LoopDriver[GroupConsumerCore]

    @overload
    def __init__(
        self: Consumer[bytes, bytes],
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: None = None,
        value: None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[Key, bytes],
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: Codec[Key],
        value: None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[bytes, Value],
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: None = None,
        value: Codec[Value],
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self,
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: Codec[Key],
        value: Codec[Value],
        **arguments: Unpack[ConsumerArguments],
    ) -> None: ...

    def __init__(
        self,
        *what: What,
        listener: Listener | None = None,
        assignors: Sequence[Assignor | str] | None = None,
        key: Codec[Any] | None = None,
        value: Codec[Any] | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> None:
        given, topics = consumer_arguments(what)
        check_listener(listener, Listener)
        decoding = decoding_of(key, value)
        self.settings = made = ConsumerSettings(given, **arguments)
        if not made.has_keeper:
            raise InvalidSetting(
                "heartbeat.mode=poll: the event loop sends the heartbeats of an asyncio consumer; "
                "leave the setting out"
            )
        self._driver = driver = LoopDriver(
            made,
            lambda driver: GroupConsumerCore(made, SystemRandom(), driver.now_ms(), assignors),
            made.session_timeout_ms if made.group_id else 0,
        )
        self._core.decoding = decoding
        self._listener = listener or Listener()
        # Sender of deferred records; it is made with the first one.
        self._deferrals: LoopDeferrals | None = None
        # Task that polls, and task that is inside a callback; None if there is none.
        self._poller: asyncio.Task[object] | None = None
        self._called: asyncio.Task[object] | None = None
        driver.close_when_forgotten(self, "a Consumer")
        try:
            if topics:
                self.subscribe(topics)
        except BaseException:
            self._driver.close()
            raise

    # --- The group

    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: Listener | None = None
    ) -> None:
        """Subscribe with the group to these topics, or to those whose names the pattern finds;
        replaces the earlier subscription."""
        check_listener(listener, Listener)
        with self._told() as core:
            core.subscribe(topics)
            if listener is not None:
                self._listener = listener

    async def commit(
        self,
        what: CommitWhat = None,
        timeout: float | None = None,
    ) -> None:
        """Commit behind this record, behind these records, at these offsets, or behind everything
        that was handed out.  Raises CommitFailed when the partition is not ours any more, or, with
        `is_retriable`, when that is being decided.  Whether a commit that is cancelled took place
        is not known."""
        await self._wait_for(partial(self._core.begin_commit, what), timeout)

    def commit_async(self, what: CommitWhat = None, callback: CommitCallback | None = None) -> None:
        """Commit as `commit` does, without waiting for the coordinator.

        One commit is on its way at a time, and of those that wait the newest offset counts.  The
        next poll or close calls `callback(offsets, error)`, a function or a coroutine, where
        `error` is None or why the offsets are not committed; without a callback a failure is
        logged.
        """
        with self._told() as core:
            core.commit_async(what, callback, self._driver.now_ms())

    async def committed(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Return the offset that the group committed in each partition; None where it never
        committed."""
        return await self._wait_for(partial(self._core.begin_committed, places), timeout)

    # --- Records

    async def poll(
        self, timeout: float = 1.0, max_records: int | None = None
    ) -> list[RecordGroup[Key, Value]]:
        """Return records that have come, by partition; empty if none came in `timeout` seconds.

        What was handed out before is finished now.  Raises what stands in the way: an offset out
        of range, a corrupt batch, a record that does not decode, a group that refuses this member,
        what a callback raised.  A poll that is cancelled has handed out nothing.
        """
        begin = partial(self._core.begin_poll, max_records)
        task = asyncio.current_task()
        if self._poller is not None and self._poller is not task:
            raise ConcurrentUse(
                f"a Consumer is polled by one task at a time: {_name(task)} polls it while "
                f"{_name(self._poller)} does"
            )
        outermost, self._poller = self._poller is None, task
        try:
            groups: list[RecordGroup[Key, Value]] = await self._driver.perform(
                begin, timeout, 0, self._call_back
            )
        finally:
            if outermost:
                self._poller = None
        if groups:
            # Turn once, so that the next fetch leaves before the user works on these records.
            self._driver.turn()
        return groups

    async def _call_back(self, callback: Callback) -> None:
        self._called = asyncio.current_task()
        try:
            await awaited(callback.call(self._listener, self))
        finally:
            self._called = None

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[Key, Value]]:
        """Yield record after record, without an end until `wakeup`; each is finished when the next
        one is asked for."""
        return _Records(self, None)

    def batches(self, max_records: int | None = None) -> AsyncIterator[RecordGroup[Key, Value]]:
        """Yield records of one partition at a time, without an end until `wakeup`; they are
        finished when the next ones are asked for."""
        return _Batches(self, max_records)

    async def hand_out(self, max_records: int | None) -> HandedOut | None:
        """Poll, and hand the records out to be yielded one by one; None after a `wakeup`."""
        while True:
            groups = await self.poll(self._iteration_seconds(), max_records)
            if groups:
                return self._core.hand_out(groups)
            if self._core.was_woken:
                return None

    def wakeup(self) -> None:
        """End the poll or iteration under way, or else the next; from any thread."""
        self._core.is_woken = True
        self._driver.wake_from_anywhere()

    async def defer(
        self,
        record: ConsumerRecord[Any, Any],
        after: timedelta | str | int | Sequence[timedelta | str | int],
        *,
        attempts: int = 5,
        dead_letter: str,
    ) -> Receipt:
        """Send a record that cannot be handled now once more to its topic, which has to delay
        records, and wait until the broker has it: its offset may be committed then.

        It comes again `after` this time: a timedelta, a text such as "5m", or milliseconds; of
        several the first counts for the first attempt, and the last for all that follow.  When it
        was sent again `attempts` times it goes to the topic `dead_letter` instead, with headers
        that say where it was; the receipt has the topic.  Every group that reads the topic gets it
        again.  What ends between this and the commit has it come twice.

        The record is sent by a producer with this consumer's settings, which is made with the first
        record and closed with the consumer.  Raises what a send raises, SchedulingUnsupported among
        it; the record is not deferred then.  Whether one is that is cancelled is not known.
        """
        # Imported here, because few consumers defer records.
        from tarry.client.aio.deferrals import LoopDeferrals
        from tarry.client.face.deferral import deferral_of

        self._driver.check_usable()
        deferral = deferral_of(record, after, attempts, dead_letter)
        self._deferrals = self._deferrals or LoopDeferrals(self.settings)
        return await self._deferrals.send(deferral)

    # --- Questions

    async def partitions_of(self, topic: str, timeout: float | None = None) -> list[int]:
        """Return the partitions of a topic, in order; waits for metadata.  Raises UnknownTopic."""
        return await self._wait_for(partial(self._core.begin_topic_query, topic), timeout)

    async def beginning_offsets(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset of the first record that each partition still has."""
        wanted = dict.fromkeys(places_of("beginning_offsets", places), EARLIEST)
        return await self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    async def end_offsets(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset behind the last record of each partition; with
        `isolation.level=read_committed` the one behind the last record that may be read."""
        wanted = dict.fromkeys(places_of("end_offsets", places), LATEST)
        return await self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset at or after each time (milliseconds since 1970); -1 where no
        record is that young."""
        wanted = times_of("offsets_for_times", times)
        return await self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    # --- Waiting

    @contextmanager
    def _told(self) -> Iterator[GroupConsumerCore]:
        self._driver.check_here()
        self._check_free()
        self._core.take_back()
        try:
            yield self._core
        finally:
            self._driver.turn_soon()

    async def _wait_for(self, begin: Begin[Answer], timeout: float | None) -> Answer:
        return await self._driver.perform(begin, timeout, self.settings.api_timeout_ms)

    # --- The end

    async def close(self, timeout: float | None = None, *, leave: bool | None = None) -> None:
        """Call `on_revoked` (or `on_lost`), commit finished records (if commits are automatic),
        leave the group, and close.

        The record in hand counts as finished only after `finish`, a commit or a later poll.  The
        close is bounded by `close.timeout.ms`; a callback that is a coroutine is cancelled then.  A
        static member does not leave, so that it can come back, unless `leave` is true.  A poll in
        another task ends with ClientClosed.  An exception of a callback is raised at the end;
        nothing is committed automatically then.  If the close is cancelled, the consumer is closed
        at once.
        """
        driver = self._driver
        driver.check_parent()
        if driver.is_stranded:
            self._close_now()
        elif not driver.is_closed:
            driver.check_usable()
            self._check_free()
            if self._called is not None and self._called is asyncio.current_task():
                self._core.check_not_told("close")
            limit_ms = timeout_ms_of(timeout, self.settings.close_timeout_ms)
            if not driver.begin_end():
                await driver.until_closed()
                return
            driver.end_all()
            begin = partial(self._core.begin_close, leave=leave)
            hear = partial(self._call_back_until, driver.now_ms() + limit_ms)
            try:
                await driver.perform(begin, None, limit_ms, hear)
            finally:
                self._close_now()
        if self._deferrals is not None:
            await self._deferrals.settle()
        await driver.settle()

    def _close_now(self) -> None:
        self._driver.close()
        if self._deferrals is not None:
            self._deferrals.abort()

    async def _call_back_until(self, ends_ms: int, callback: Callback) -> None:
        """Call the user back during a close, but wait no longer than the close may last."""
        left_ms = max(ends_ms - self._driver.now_ms(), 0)
        limit = asyncio.timeout(left_ms / 1000)
        try:
            async with limit:
                await self._call_back(callback)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TimedOut(
                f"{callback.event.callback} did not return before the consumer had to be closed"
            ) from error

    async def __aenter__(self) -> Self:
        self._driver.check_usable()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            # The event loop is about to end.
            self._close_now()
        elif error_type is None or not self._driver.is_forked:
            await self.close()


class _Iteration(Generic[Piece]):
    """Iteration that polls when it has yielded everything.  It is no generator, so an abandoned
    iteration leaves nothing for the event loop to clean up."""

    def __init__(self, consumer: Consumer[Any, Any], max_records: int | None) -> None:
        self._consumer = consumer
        self._max_records = max_records
        self._pieces: Iterator[Piece] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        while True:
            if self._pieces is not None:
                for piece in self._pieces:
                    return piece
            handed_out = await self._consumer.hand_out(self._max_records)
            if handed_out is None:
                raise StopAsyncIteration
            self._pieces = PiecesForATick(self.pieces_of(handed_out))

    def pieces_of(self, handed_out: HandedOut) -> Iterator[Piece]:
        raise NotImplementedError


class _Records(_Iteration[ConsumerRecord[Any, Any]]):
    """Iteration over records."""

    def pieces_of(self, handed_out: HandedOut) -> Iterator[ConsumerRecord[Any, Any]]:
        return handed_out.records()


class _Batches(_Iteration[RecordGroup[Any, Any]]):
    """Iteration over groups of records."""

    def pieces_of(self, handed_out: HandedOut) -> Iterator[RecordGroup[Any, Any]]:
        return handed_out.batches()


def _name(task: asyncio.Task[object] | None) -> str:
    return task.get_name() if task is not None else "a call without a task"
