"""The consumer's core for assigned partitions: positions, look-ups, fetches, and `take` of records.

Groups build on this core (`group/consumer`): they call `assign` with the assigned partitions, and
decide where reading begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tarry.base.doors import Random
from tarry.base.errors import NONE, error_name
from tarry.base.ids import TopicPartition
from tarry.client.core.arguments import check_offset, place_of, places_of
from tarry.client.core.consumer.column_taker import ColumnTaker, RowRun
from tarry.client.core.consumer.decoding import Decoding
from tarry.client.core.consumer.fetcher import Fetcher
from tarry.client.core.consumer.handed_out import HandedOut
from tarry.client.core.consumer.lookup import (
    EARLIEST,
    LATEST,
    OFFSET_UNKNOWN,
    Answer,
    Lookup,
    OffsetQuery,
)
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.consumer.record_group import RecordGroup
from tarry.client.core.core import ClientCore
from tarry.client.errors import ConcurrentUse, NotSubscribed, OffsetOutOfRange, TopicRecreated
from tarry.client.offset_reset import RESET_BY_DURATION, RESET_EARLIEST, RESET_NONE
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError, timed_out
from tarry.records.open_batch import OpenBatch
from tarry.records.record import take_records


class ConsumerCore(ClientCore):
    """Core of a consumer: `assign` and `seek` between turns; `take` returns fetched records."""

    what_waits = "polls bring nothing"

    def __init__(self, settings: ConsumerSettings, random: Random, now_ms: int) -> None:
        super().__init__(settings, random, now_ms)
        self.consumer_settings = settings
        self.lookup = Lookup(
            self.connections, self.metadata, self.refresh, settings.isolation_level
        )
        self.fetcher = Fetcher(settings, self.connections, self.metadata, self.refresh)
        self.fetcher.when_reset = self.reset
        # Set by the face if the user gave codecs.
        self.decoding: Decoding | None = None
        self.metadata.when_recreated = self._on_recreated
        self._is_missing_told = False
        self._handed_out: HandedOut | None = None

    # --- What is read, and from where

    def assign(self, places: list[TopicPartition]) -> None:
        """Read these partitions and no others; partitions that were read before keep their
        positions."""
        old = self.fetcher.positions
        positions: dict[TopicPartition, PartitionPosition] = {}
        for place in places:
            known = old.pop(place) if place in old else None
            positions[place] = known or PartitionPosition(*place)
        for position in old.values():
            self.fetcher.forget(position)
            self.cancel(position.question)
        self.fetcher.positions = positions
        self.track_only(self.topics_in_use())

    def topics_in_use(self) -> list[str]:
        """Return the topics whose metadata is needed; a topic may occur twice."""
        return [topic for topic, _ in self.fetcher.positions]

    def track_only(self, topics: Iterable[str]) -> None:
        """Refresh the metadata of these topics, and of no others."""
        names = dict.fromkeys(topics)
        for name in self.metadata.tracked:
            if name not in names:
                self.metadata.untrack(name)
        for name in names:
            self.track(name)

    def cancel(self, question: object) -> None:
        """Cancel a look-up of an offset whose answer is not needed any more."""
        self.lookup.cancel(question)

    def position(self, place: TopicPartition) -> PartitionPosition:
        """Return the position of an assigned partition; raise NotSubscribed if it is not
        assigned."""
        position = self.fetcher.positions.get(place)
        if position is None:
            topic, partition = place
            raise NotSubscribed(
                f"{topic} [{partition}] is not read by this consumer: "
                f"assign([({topic!r}, {partition})]) first, or wait until the group assigns it"
            )
        return position

    def _check_read(self, places: Iterable[TopicPartition]) -> None:
        """Raise NotSubscribed unless all places are assigned, so that a call changes all places or
        none."""
        for place in places:
            self.position(place)

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Set the position: the record at this offset is handed out next."""
        place_of("seek", place)
        check_offset("seek", offset)
        position = self.position(place)
        self.fetcher.forget(position)
        self.cancel(position.question)
        position.seek(offset)

    def seek_to(self, place: TopicPartition, timestamp: int) -> None:
        """Seek to a time, or to EARLIEST or LATEST; a time after the last record means the end of
        the log."""
        position = self.position(place)
        self.fetcher.forget(position)
        self.cancel(position.question)
        position.seek(OFFSET_UNKNOWN)
        position.question = self.lookup.ask(place, timestamp, self._on_found)

    def seek_all(self, places: Iterable[TopicPartition] | None, timestamp: int) -> None:
        """Seek these partitions, or all assigned ones, to a time, or to EARLIEST or LATEST."""
        wanted = list(self.fetcher.positions) if places is None else places_of("seek", places)
        self._check_read(wanted)
        for place in wanted:
            self.seek_to(place, timestamp)

    def pause(self, places: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions; fetched records are dropped, errors stay."""
        wanted = places_of("pause", places)
        self._check_read(wanted)
        for place in wanted:
            position = self.position(place)
            position.is_paused = True
            self.fetcher.forget(position)
            position.drop_fetched()

    def resume(self, places: Iterable[TopicPartition]) -> None:
        """Read paused partitions again."""
        wanted = places_of("resume", places)
        self._check_read(wanted)
        for place in wanted:
            self.position(place).is_paused = False

    def begin_offsets(
        self, wanted: dict[TopicPartition, int], timeout_ms: int, now_ms: int
    ) -> ReadOffsets:
        """Look up offsets at times or at EARLIEST or LATEST, without moving the positions."""
        for topic, _ in wanted:
            self.track(topic)
        query = ReadOffsets(self, wanted)
        return self.operations.begin(query, timeout_ms, now_ms)

    def _on_found(self, place: TopicPartition, answer: Answer, now_ms: int) -> None:
        position = self.position(place)
        if isinstance(answer, ClientError):
            position.fail(answer)
        elif answer.offset == OFFSET_UNKNOWN:
            # No record has this time or a later one: read records that are written from now on.
            self.seek_to(place, LATEST)
        else:
            position.seek(answer.offset)

    def _on_recreated(self, topic: str) -> None:
        for position in self.fetcher.positions.values():
            if position.topic == topic:
                position.fail_void(
                    TopicRecreated(
                        f"topic {topic} was deleted and made anew; offset {position.position} of "
                        f"{position} belonged to the old one"
                    )
                )

    # --- Turns

    def work(self, now_ms: int) -> None:
        for place, position in self.fetcher.positions.items():
            if position.position < 0 and position.question is None and position.error is None:
                self.begin_at(place, position)
        self.lookup.work(now_ms)
        self.fetcher.work(now_ms)

    def begin_at(self, place: TopicPartition, position: PartitionPosition) -> None:
        """Find the first position of a partition for which the user named no offset."""
        self.reset(position)

    def reset(self, position: PartitionPosition) -> None:
        """Move a position as `auto.offset.reset` says."""
        reset = self.consumer_settings.offset_reset
        if reset.strategy == RESET_NONE:
            position.fail(
                OffsetOutOfRange(
                    f"there is no offset to begin at for {position}, and auto.offset.reset is none"
                )
            )
            return
        timestamp = LATEST
        if reset.strategy == RESET_EARLIEST:
            timestamp = EARLIEST
        elif reset.strategy == RESET_BY_DURATION:
            timestamp = max(self.turned_wall_ms - reset.duration_ms, 0)
        self.seek_to((position.topic, position.partition), timestamp)

    @property
    def is_waiting(self) -> bool:
        """True while the consumer has topics to read, or an operation waits for the cluster."""
        return bool(self.topics_in_use()) or super().is_waiting

    def trouble(self, now_ms: int) -> str:
        """Return why no records arrive at the moment; an empty text if no problem is known."""
        return super().trouble(now_ms) or self._trouble_with_topics(now_ms)

    def _trouble_with_topics(self, now_ms: int) -> str:
        """Describe a missing topic, an unreachable leader or a refusal; return "" if there is
        none."""
        for name in dict.fromkeys(self.topics_in_use()):
            topic = self.metadata.topics.get(name)
            if topic is not None and topic.needs_refresh:
                return self.metadata.problem_with(name, now_ms)
        for (topic_name, partition), position in self.fetcher.positions.items():
            leader = self.metadata.leader_of(topic_name, partition)
            failure = None if leader is None else self.connections.failure_of(leader.leader_id)
            if failure is not None:
                return str(failure)
            if position.refused_by != NONE:
                return f"{position} is not given to be read ({error_name(position.refused_by)})"
        return ""

    def has_records(self, now_ms: int) -> bool:
        """Return true if `take` would return records or raise an error."""
        if self._news(now_ms) is not None:
            return True
        return any(position.has_records for position in self.fetcher.positions.values())

    def _missing_topic(self, now_ms: int) -> str | None:
        """Return an assigned topic that does not exist; None if all exist."""
        for position in self.fetcher.positions.values():
            if self.metadata.is_missing(position.topic, now_ms):
                return position.topic
        return None

    def take(self, records_max: int, now_ms: int) -> list[RecordGroup[Any, Any]]:
        """Take at most `records_max` records, and move the positions behind them.

        Raises an error of a partition that the user has not seen, once the records before it were
        taken; other partitions may still have records then.
        """
        self._raise_news(now_ms)
        groups: list[RecordGroup[Any, Any]] = []
        count = 0
        for position in self.fetcher.positions.values():
            if position.is_paused or position.is_held:
                continue
            records = self._take_from(position, records_max - count, now_ms)
            if records:
                # The end may lie behind control batches and aborted records, so that a commit
                # leaves no lag.
                topic, partition, end = position.topic, position.partition, position.position
                groups.append(RecordGroup(topic, partition, records, end))
                count += len(records)
            if count >= records_max:
                break
        if groups:
            self._rotate()
        elif self.decoding is not None:
            # The very first record may have failed to decode.
            self._raise_news(now_ms)
        return groups

    def _take_from(self, position: PartitionPosition, records_max: int, now_ms: int) -> list[Any]:
        taken = position.left_over
        position.left_over = []
        if taken:
            position.position = position.left_over_end
        fetcher = self.fetcher
        topic, partition = position.topic, position.partition
        count = len(taken)

        def take(batch: OpenBatch) -> None:
            taken.extend(take_records(batch, position.position, topic, partition))

        while position.buffered and len(taken) < records_max:
            if not fetcher.take_next(position, take, now_ms):
                break
        fetcher.records += len(taken) - count
        if len(taken) > records_max:
            position.left_over = taken[records_max:]
            position.left_over_end = position.position
            position.position = position.left_over[0].offset
            del taken[records_max:]
        return taken if self.decoding is None else self.decoding.decode(position, taken)

    def take_columns(self, taker: ColumnTaker, now_ms: int) -> list[RowRun]:
        """Take rows until the taker is full, and move the positions behind them.  Raises errors
        like `take`."""
        self._raise_news(now_ms)
        for position in self.fetcher.positions.values():
            if taker.is_full:
                break
            if not position.is_paused:
                self._take_columns_from(position, taker, now_ms)
        if taker.runs:
            self._rotate()
        return taker.runs

    def _take_columns_from(
        self, position: PartitionPosition, taker: ColumnTaker, now_ms: int
    ) -> None:
        fetcher = self.fetcher
        if position.left_over:
            # Records that were given back are decoded: drop them, and fetch their bytes again.
            fetcher.forget(position)
            position.drop_fetched()
        rows_before = taker.buffers.row_count
        first_offset = position.position

        def take(batch: OpenBatch) -> None:
            taker.take(batch, position.position, position.end_offset)

        while position.buffered and not taker.is_full:
            if not fetcher.take_next(position, take, now_ms):
                break
        count = taker.buffers.row_count - rows_before
        fetcher.records += count
        if count > 0:
            run = RowRun(position.topic, position.partition, count, first_offset, position.position)
            taker.runs.append(run)

    def give_back_rows(self, runs: Iterable[RowRun]) -> None:
        """Return rows that did not reach the user: they are fetched again."""
        for run in runs:
            place = (run.topic, run.partition)
            if place in self.fetcher.positions:
                self.seek(place, run.first_offset)

    def finish_handed_out(self) -> None:
        """Mark all records that were handed out as finished by the user."""
        for position in self.fetcher.positions.values():
            position.finish(position.position)

    def hand_out(self, groups: list[RecordGroup[Any, Any]]) -> HandedOut:
        """Hand out the records of a poll to an iterator, which gives back those not yielded."""
        self._handed_out = HandedOut(groups)
        return self._handed_out

    def take_back(self) -> None:
        """Take back the records that an iteration has not yielded, and step over a skipped record.

        Call it before each call of the user.
        """
        if self._handed_out is not None:
            self._handed_out.give_back(self.fetcher.positions)
            self._handed_out = None
        if self.decoding is not None:
            for position in self.fetcher.positions.values():
                position.let_go()

    def check_not_decoding(self) -> None:
        """Raise ConcurrentUse if a codec calls the consumer while it decodes a record."""
        if self.decoding is not None and self.decoding.is_decoding:
            raise ConcurrentUse(
                "a codec has called the consumer whose record it decodes: call it when the poll "
                "has returned"
            )

    def disown(self) -> None:
        if self._handed_out is not None:
            self._handed_out.is_over = True

    def _rotate(self) -> None:
        """Rotate the partitions: the first one is read last the next time."""
        positions = self.fetcher.positions
        if len(positions) > 1:
            place = next(iter(positions))
            positions[place] = positions.pop(place)

    def _news(self, now_ms: int) -> ClientError | None:
        """Return the first error that the user has not seen; None if there is none."""
        for position in self.fetcher.positions.values():
            if not position.is_error_told and not position.has_records and position.error:
                return position.error
        missing = self._missing_topic(now_ms)
        if missing is None:
            self._is_missing_told = False
        elif not self._is_missing_told:
            return self.metadata.error_of(missing, now_ms)
        return None

    def _raise_news(self, now_ms: int) -> None:
        """Raise an error that the user has not seen, even while other partitions have records."""
        news = self._news(now_ms)
        if news is None:
            return
        for position in self.fetcher.positions.values():
            if position.error is news:
                position.is_error_told = True
                raise news.with_traceback(None)
        self._is_missing_told = True
        raise news.with_traceback(None)

    def standing_error(self, now_ms: int) -> ClientError | None:
        """Return an error that was raised and still holds; a poll without records raises it
        again."""
        for position in self.fetcher.positions.values():
            if position.error is not None:
                return position.error
        missing = self._missing_topic(now_ms)
        return None if missing is None else self.metadata.error_of(missing, now_ms)


class ReadOffsets(OffsetQuery[dict[TopicPartition, int]]):
    """Query of the offsets of partitions; raises the first error of a partition."""

    def __init__(self, core: ConsumerCore, wanted: dict[TopicPartition, int]) -> None:
        super().__init__(core.operations, core.lookup, wanted)
        self._core = core

    def answer(self, now_ms: int) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for place, answer in self.answers.items():
            if isinstance(answer, ClientError):
                raise answer
            found[place] = answer.offset
        return found

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        self.lookup.untrack_missing(self.wanted, self._core.topics_in_use())

    def late_error(self, now_ms: int) -> ClientError:
        core, waited_ms = self._core, self.timeout_ms
        for topic, partition in self.wanted:
            leader = core.metadata.leader_of(topic, partition)
            if leader is None:
                reason = core.refresh.last_error
                if reason is not None:
                    return timed_out(f"no broker described topic {topic!r}", waited_ms, reason)
                return core.metadata.error_of(topic, now_ms, partition)
            failure = core.connections.failure_of(leader.leader_id)
            if (topic, partition) not in self.answers and failure is not None:
                return timed_out("the leader gave no offset", waited_ms, failure)
        return timed_out("the leaders did not give their offsets", waited_ms, None)
