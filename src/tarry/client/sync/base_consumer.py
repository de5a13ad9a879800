"""BaseConsumer: what the synchronous consumers share, whatever their batches contain.

`Consumer` adds batches of records, `ArrowConsumer` batches of columns.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Thread, current_thread, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack

from tarry.base.ids import TopicPartition
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
from tarry.client.errors import ClientClosed, ConcurrentUse
from tarry.client.face.chance import SystemRandom
from tarry.client.face.consumer import ConsumerFace
from tarry.client.face.driver import Begin
from tarry.client.face.iteration import PolledRecords
from tarry.client.setting_arguments import ConsumerArguments
from tarry.client.settings import ConsumerSettings, SettingValue
from tarry.client.sync.driver import Driver, Tell
from tarry.client.sync.exclusive import Exclusive
from tarry.client.sync.interrupts import Interrupts
from tarry.client.sync.listener import Listener

if TYPE_CHECKING:
    from datetime import timedelta

    from tarry.client.sync.deferrals import Deferrals
    from tarry.client.sync.receipt import Receipt

log = logging.getLogger("tarry.client")


What = str | re.Pattern[str] | Mapping[str, SettingValue] | None


class BaseConsumer(ConsumerFace, Generic[Key, Value]):
    """Consumer without `batches`, to be subclassed."""

    _driver: Driver[GroupConsumerCore]

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
        self._driver = Driver(
            made,
            lambda driver: GroupConsumerCore(made, SystemRandom(), driver.now_ms(), assignors),
            "tarry-keeper",
        )
        self._core.decoding = decoding
        self._core.membership.round.who_turns = get_ident
        self._exclusive = Exclusive("a Consumer")
        self._listener = listener or Listener()
        # Sender of deferred records; it is made with the first one.
        self._deferrals: Deferrals | None = None
        # Thread that closes the consumer or has closed it; None before.
        self._closer: Thread | None = None
        # Function that is called repeatedly while a question to the cluster waits.
        self.on_wait: Tell | None = None
        self._driver.close_when_forgotten(self, "a Consumer")
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

    def commit(
        self,
        what: CommitWhat = None,
        timeout: float | None = None,
    ) -> None:
        """Commit behind this record, behind these records, at these offsets, or behind everything
        that was handed out.  Raises CommitFailed when the partition is not ours any more, or, with
        `is_retriable`, when that is being decided."""
        self._wait_for(partial(self._core.begin_commit, what), timeout)

    def commit_async(self, what: CommitWhat = None, callback: CommitCallback | None = None) -> None:
        """Commit as `commit` does, without waiting for the coordinator.

        One commit is on its way at a time, and of those that wait the newest offset counts.  The
        next poll or close calls `callback(offsets, error)`, where `error` is None or why the
        offsets are not committed; without a callback a failure is logged.
        """
        with self._told() as core:
            core.commit_async(what, callback, self._driver.now_ms())
        # Turn once, so that the request leaves before the caller continues.
        self._driver.nudge()

    def committed(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Return the offset that the group committed in each partition; None where it never
        committed."""
        return self._wait_for(partial(self._core.begin_committed, places), timeout)

    # --- Records

    def poll(
        self, timeout: float = 1.0, max_records: int | None = None
    ) -> list[RecordGroup[Key, Value]]:
        """Return records that have come, by partition; empty if none came in `timeout` seconds.

        What was handed out before is finished now.  Raises what stands in the way: an offset out
        of range, a corrupt batch, a record that does not decode, a group that refuses this member,
        what a callback raised.
        """
        begin = partial(self._core.begin_poll, max_records)
        driver = self._driver
        interrupts = Interrupts()
        groups: list[RecordGroup[Key, Value]] = []
        driver.check_usable()
        self._check_free()
        with self._exclusive:
            try:
                groups = driver.perform(begin, timeout, 0, self._call_back, interrupts=interrupts)
                if groups:
                    # Turn once, so that the next fetch leaves before the user works on these
                    # records.
                    driver.nudge(interrupts)
            finally:
                # If Ctrl-C is raised here, the records are kept for the next poll.
                interrupts.release_or(partial(self._take_back, groups))
            return groups

    def _take_back(self, groups: list[RecordGroup[Key, Value]]) -> None:
        if groups:
            with self._driver.lock:
                self._core.hand_out(groups)
                self._core.take_back()

    def _call_back(self, callback: Callback) -> None:
        callback.call(self._listener, self)

    def __iter__(self) -> Iterator[ConsumerRecord[Key, Value]]:
        """Yield record after record, without an end until `wakeup`; each is finished when the next
        one is asked for."""
        return PolledRecords(self._hand_out)

    def _hand_out(self, max_records: int | None = None) -> HandedOut | None:
        """Poll, and hand the records out to be yielded one by one; None after a `wakeup`."""
        while True:
            groups = self.poll(self._iteration_seconds(), max_records)
            if groups:
                return self._core.hand_out(groups)
            if self._core.was_woken:
                return None

    def wakeup(self) -> None:
        """End the poll or iteration under way, or else the next; from any thread."""
        self._core.is_woken = True
        self._driver.ask_to_leave()

    def defer(
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

        Any thread may call it.  The record is sent by a producer with this consumer's settings,
        which is made with the first record and closed with the consumer.  Raises what a send
        raises, SchedulingUnsupported among it; the record is not deferred then.
        """
        # Imported here, because few consumers defer records.
        from tarry.client.face.deferral import deferral_of
        from tarry.client.sync.deferrals import Deferrals

        driver = self._driver
        driver.check_usable()
        deferral = deferral_of(record, after, attempts, dead_letter)
        with driver.lock:
            deferrals = self._deferrals = self._deferrals or Deferrals(self.settings)
            if driver.is_closed:
                deferrals.close()
        return deferrals.send(deferral)

    # --- Questions

    def partitions_of(self, topic: str, timeout: float | None = None) -> list[int]:
        """Return the partitions of a topic, in order; waits for metadata.  Raises UnknownTopic."""
        return self._wait_for(partial(self._core.begin_topic_query, topic), timeout)

    def beginning_offsets(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset of the first record that each partition still has."""
        wanted = dict.fromkeys(places_of("beginning_offsets", places), EARLIEST)
        return self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    def end_offsets(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset behind the last record of each partition; with
        `isolation.level=read_committed` the one behind the last record that may be read."""
        wanted = dict.fromkeys(places_of("end_offsets", places), LATEST)
        return self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset at or after each time (milliseconds since 1970); -1 where no
        record is that young."""
        wanted = times_of("offsets_for_times", times)
        return self._wait_for(partial(self._core.begin_offsets, wanted), timeout)

    # --- Waiting

    @contextmanager
    def _told(self) -> Iterator[GroupConsumerCore]:
        """Yield the core for a call of one thread at a time, while no thread turns it; records that
        an iteration has not yielded are taken back first."""
        self._driver.check_usable()
        self._check_free()
        with self._exclusive, self._driver.lock:
            self._core.take_back()
            yield self._core

    def _check_free(self) -> None:
        # A thread that waits for the lock checks this before it enters.
        closer = self._closer
        if closer is not None and closer is not current_thread() and not self._exclusive.is_mine:
            raise ClientClosed("the client was closed")
        self._check_outside()

    def _check_outside(self) -> None:
        """Raise an error for a call that a codec or an assignor of this consumer makes while it
        runs."""
        if self._exclusive.is_mine:
            self._core.check_not_decoding()
        self._core.check_not_assigning(get_ident())

    def _wait_for(self, begin: Begin[Answer], timeout: float | None) -> Answer:
        limit_ms = self.settings.api_timeout_ms
        self._driver.check_usable()
        self._check_free()
        with self._exclusive:
            return self._driver.perform(begin, timeout, limit_ms, tell=self.on_wait)

    # --- The end

    def close(self, timeout: float | None = None, *, leave: bool | None = None) -> None:
        """Call `on_revoked` (or `on_lost`), commit finished records (if commits are automatic),
        leave the group, and close.

        The record in hand counts as finished only after `finish`, a commit or a later poll.  The
        close is bounded by `close.timeout.ms`, apart from the time that callbacks take.  A static
        member does not leave, so that it can come back, unless `leave` is true.  An exception of a
        callback is raised at the end; nothing is committed automatically then.  A call that runs in
        another thread raises ClientClosed.
        """
        limit_ms = timeout_ms_of(timeout, self.settings.close_timeout_ms)
        driver = self._driver
        driver.check_parent()
        if driver.is_closed:
            return
        self._check_outside()
        if self._exclusive.is_mine:
            # Closing inside a callback is refused, but another thread may close the consumer
            # meanwhile.
            self._core.check_not_told("close")
        begin = partial(self._core.begin_close, leave=leave)
        ends_ms = driver.now_ms() + limit_ms
        with driver.lock:
            is_first, self._closer = self._closer is None, self._closer or current_thread()
        if is_first and not self._exclusive.is_free:
            driver.end_all()
        try:
            with self._exclusive.awaited(limit_ms / 1000):
                if not driver.is_closed:
                    left_s = max(ends_ms - driver.now_ms(), 0) / 1000
                    driver.perform(begin, left_s, 0, self._call_back)
        except ConcurrentUse:
            # The other thread is most likely in a callback, which cannot be ended.
            log.warning("a Consumer was closed while another thread used it; its member times out")
        finally:
            driver.close()
            if self._deferrals is not None:
                self._deferrals.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error_type is not None and self._driver.is_forked:
            # Only the first error is to be seen.
            return
        self.close()
