"""Publishing: carries out the steps of the sink, with a directory and a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.lookup import EARLIEST, LATEST, FoundOffset
from tarry.client.core.publisher.look_back import SeenRange
from tarry.client.core.publisher.requests import OffsetRange
from tarry.client.errors import BrokerError, UnknownTopic
from tarry.client.face.clock import monotonic_ms, wall_ms
from tarry.client.sync.publisher import Publisher
from tarry.link.errors import ClientError, TimedOut, UnsupportedVersion
from tarry.records.numbering import numbered
from tarry.spark.writing import effects
from tarry.spark.writing.directory import SinkDirectory, refusal
from tarry.spark.writing.effects import LookedBack, SentRound, Steps
from tarry.spark.writing.plan import (
    NO_TOPIC_ID,
    Noted,
    Plan,
    PlannedFile,
    Share,
    SinkInterrupted,
    SinkRefused,
    refused_cluster,
)
from tarry.spark.writing.target import known_topics, other_cluster, topics_made_anew
from tarry.wire.crc32c import crc32c

# Kafka's default, where a cluster does not tell its own.
EXPIRATION_MS: Final = 24 * 3_600_000
EXPIRATION: Final = "producer.id.expiration.ms"

# Set, whatever its value, on a topic whose records may wait until they are due.
DELAY: Final = "delay.enable"

# Of batches that are read for one round of requests.
ROUND_BYTES_MAX: Final = 32 * 1024 * 1024

READ_BYTES: Final = 4 * 1024 * 1024

# Files of tasks that are open at a time: a micro-batch may have more than a process may open.
OPEN_FILES_MAX: Final = 64

PAUSE_MS: Final = 100
PAUSE_MS_MAX: Final = 5_000

R = TypeVar("R")


def expiration_ms_of(publisher: Publisher) -> int:
    """Return after which rest brokers forget a producer id."""
    try:
        broker_id = publisher.describe_cluster().brokers[0].broker_id
        entries = publisher.describe_broker_configs(broker_id)
    except (BrokerError, IndexError):
        # Not every user may ask.
        return EXPIRATION_MS
    values = [entry.value or "" for entry in entries if entry.name == EXPIRATION]
    return int(values[0]) if values and values[0].isdigit() else EXPIRATION_MS


class Publishing:
    """Carries out effects; `limit_ms` is how long no progress is borne."""

    def __init__(self, directory: SinkDirectory, publisher: Publisher, limit_ms: int) -> None:
        self._directory = directory
        self._publisher = publisher
        self._limit_ms = limit_ms
        # Those that are open, and the names of those whose content was checked.
        self._files: dict[str, int] = {}
        self._checked: dict[str, None] = {}
        self._stands_since_ms = 0

    def run(self, steps: Steps[R]) -> R:
        """Take the steps to their end."""
        result: object = None
        try:
            while True:
                result = self._carry_out(steps.send(result))
        except StopIteration as end:
            answer: R = end.value
            return answer
        finally:
            for descriptor in self._files.values():
                os.close(descriptor)
            self._files.clear()

    def _carry_out(self, effect: effects.Effect[Any]) -> object:
        match effect:
            case effects.ReadPlan():
                return self._directory.read_plan(effect.batch_id)
            case effects.ReadNewest():
                return self._directory.read_newest()
            case effects.FindLacking():
                return self._directory.lacking(effect.files)
            case effects.CreatePlan():
                return self._directory.create_plan(effect.plan)
            case effects.MarkDone():
                self._directory.mark_done(effect.plan)
            case effects.RemoveFiles():
                self._directory.remove(effect.names)
            case effects.Now():
                return wall_ms()
            case effects.NewProducer():
                return self._publisher.new_producer_id()
            case effects.NoteEnds():
                return self._note_ends(effect.places)
            case effects.SendRound():
                return self._send(effect)
            case effects.LookBack():
                return self._look_back(effect)
            case effects.PauseSending():
                self._pause(effect)
            case _:
                raise AssertionError(f"there is no effect {effect}")
        return None

    # --- The cluster

    def _note_ends(self, places: list[TopicPartition]) -> Noted:
        cluster_id = self._publisher.describe_cluster().cluster_id
        topics = sorted({topic for topic, _ in places})
        described = known_topics(self._publisher, topics)
        topic_ids = {topic.name: topic.topic_id.hex() for topic in described}
        ends = self._offsets(places, LATEST) if places else {}
        return Noted(
            {place: one.offset for place, one in ends.items()},
            topic_ids,
            cluster_id,
            {place: one.leader_epoch for place, one in ends.items()},
        )

    def _offsets(
        self, places: list[TopicPartition], time_asked: int
    ) -> dict[TopicPartition, FoundOffset]:
        found: dict[TopicPartition, FoundOffset] = {}
        for place, answer in self._publisher.offsets(dict.fromkeys(places, time_asked)).items():
            if not isinstance(answer, FoundOffset):
                raise answer
            found[place] = answer
        return found

    def _cuts(
        self, plan: Plan, ends: Mapping[TopicPartition, FoundOffset]
    ) -> dict[TopicPartition, int]:
        """Find the logs that were cut below what the plan notes as their ends; leaders are asked
        where they lead in a newer epoch than those that told it."""
        asked = {
            place: epoch
            for place, end in ends.items()
            if 0 <= (epoch := plan.share_of(place).leader_epoch) < end.leader_epoch
        }
        if not asked:
            return {}
        leaders = {place: ends[place].leader_epoch for place in asked}
        found: dict[TopicPartition, int] = {}
        for place, answer in self._publisher.epoch_ends(asked, leaders).items():
            if isinstance(answer, UnsupportedVersion):
                # Brokers that old cannot tell.
                continue
            if isinstance(answer, ClientError):
                raise answer
            if 0 <= answer.end_offset < plan.share_of(place).end_offset:
                found[place] = answer.end_offset
        return found

    def _look_back(self, effect: effects.LookBack) -> Mapping[TopicPartition, LookedBack]:
        plan, offsets = effect.plan, effect.offsets
        if not offsets:
            return {}
        self._check_topics(plan)
        starts = self._offsets([*offsets], EARLIEST)
        ends = self._offsets([*offsets], LATEST)
        cuts = self._cuts(plan, ends)
        by_producer: dict[int, dict[TopicPartition, OffsetRange]] = {}
        known: dict[TopicPartition, SeenRange] = {}
        for place, offset in offsets.items():
            first = max(offset, starts[place].offset)
            before = effect.before.get(place)
            if before is not None and 0 <= before.leader_epoch == ends[place].leader_epoch:
                known[place] = before.seen
                first = max(first, before.seen.end_offset)
            ranges = by_producer.setdefault(plan.share_of(place).producer_id, {})
            ranges[place] = first, max(ends[place].offset, first)
        delayed = self._last_sequences(plan, [*offsets])
        found: dict[TopicPartition, LookedBack] = {}
        for producer_id, ranges in by_producer.items():
            for place, read in self._read_back(ranges, topic_ids_of(plan), producer_id).items():
                seen = read.behind(known[place]) if place in known else read
                start, end = starts[place].offset, ends[place]
                found[place] = LookedBack(
                    seen,
                    start,
                    end.offset,
                    cuts.get(place),
                    end.leader_epoch,
                    place in delayed,
                    delayed.get(place, -1),
                )
        return found

    def _last_sequences(
        self, plan: Plan, places: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Ask for the last sequences of the plan's producers in topics with scheduled records,
        whose batches may wait where no consumer sees them; -1: none is known."""
        topics = dict.fromkeys(topic for topic, _ in places)
        delayed = [topic for topic in topics if self._has_delay(topic)]
        asked = [place for place in places if place[0] in delayed]
        if not asked:
            return {}
        found: dict[TopicPartition, int] = {}
        for place, producers in self._publisher.describe_producers(asked).items():
            if isinstance(producers, ClientError):
                raise producers
            share = plan.share_of(place)
            found[place] = -1
            for one in producers:
                identity = (one.producer_id, one.producer_epoch)
                if identity == (share.producer_id, share.producer_epoch):
                    found[place] = one.last_sequence
        return found

    def _has_delay(self, topic: str) -> bool:
        """Tell whether records of a topic may wait, or have waited since `delay.enable` was set."""
        entries = self._publisher.describe_topic_configs(topic)
        return any(each.name == DELAY and not each.is_default for each in entries)

    def _read_back(
        self,
        ranges: Mapping[TopicPartition, OffsetRange],
        topic_ids: Mapping[str, bytes],
        producer_id: int,
    ) -> dict[TopicPartition, SeenRange]:
        """Read ranges to their ends, in as many calls as that takes; raises the error of one that
        came no further."""
        seen = {place: SeenRange(first) for place, (first, _) in ranges.items()}
        moved_ms = monotonic_ms()
        while left := {
            place: (seen[place].end_offset, end)
            for place, (_, end) in ranges.items()
            if seen[place].end_offset < end
        }:
            try:
                answers = self._publisher.look_back(left, topic_ids, producer_id)
            except TimedOut as late:
                answers = dict.fromkeys(left, late)
            errors: list[ClientError] = []
            for place, answer in answers.items():
                if isinstance(answer, SeenRange):
                    seen[place] = answer.behind(seen[place])
                    moved_ms = monotonic_ms()
                else:
                    errors.append(answer)
            is_over = monotonic_ms() - moved_ms >= self._limit_ms
            for error in errors:
                if is_over or not isinstance(error, TimedOut):
                    raise error
        return seen

    def _check_topics(self, plan: Plan) -> None:
        """Refuse to look for a plan's batches in another topic of the same name."""
        cluster_id = other_cluster(self._publisher, plan)
        if cluster_id is not None:
            raise refused_cluster(plan, cluster_id)
        begun = f"micro-batch {plan.batch_id} is frozen and not written to its end"
        try:
            anew = topics_made_anew(self._publisher, plan, {share.topic for share in plan.shares})
        except UnknownTopic as error:
            raise SinkInterrupted(
                f"{begun}, and {error}: start the query again when brokers know it, and it goes on "
                "where it stopped; if it was deleted, begin the query with a checkpoint of its own",
                is_target_gone=True,
            ) from error
        if anew:
            raise SinkRefused(
                f"{begun}, and topic {anew[0]!r} was deleted and made anew: begin the query with a "
                "checkpoint of its own",
                is_target_gone=True,
            )

    # --- Sending

    def _send(self, effect: effects.SendRound) -> SentRound:
        plan = effect.plan
        batches: dict[TopicPartition, bytes] = {}
        size = 0
        try:
            for place, ordinal in effect.ordinals.items():
                share = plan.share_of(place)
                size += share.batches[ordinal].size
                if batches and size > ROUND_BYTES_MAX:
                    break
                batches[place] = self._batch(plan, share, ordinal)
        except FileNotFoundError:
            return SentRound({}, are_files_gone=True)
        except OSError as error:
            raise refusal(self._directory.path, "cannot be read", error) from error
        if wall_ms() > effect.not_after_ms:
            return SentRound({}, is_late=True)
        return SentRound(self._publisher.send_batches(batches, topic_ids_of(plan)))

    def _batch(self, plan: Plan, share: Share, ordinal: int) -> bytes:
        batch = share.batches[ordinal]
        file = plan.files[batch.file]
        descriptor = self._files.get(file.name)
        if descriptor is None:
            if len(self._files) >= OPEN_FILES_MAX:
                os.close(self._files.pop(next(iter(self._files))))
            descriptor = self._files[file.name] = self._open(file)
        data = os.pread(descriptor, batch.size, batch.position)
        sequence = share.sequence_of(ordinal)
        return numbered(data, share.producer_id, share.producer_epoch, sequence)

    def _open(self, file: PlannedFile) -> int:
        """Open a file of a task, if its content is what the task wrote."""
        path = self._directory.path / file.name
        descriptor = os.open(path, os.O_RDONLY)
        if file.name in self._checked:
            return descriptor
        crc = size = 0
        while data := os.pread(descriptor, READ_BYTES, size):
            crc = crc32c(data, crc)
            size += len(data)
        if (size, crc) != (file.size, file.crc):
            os.close(descriptor)
            raise SinkRefused(
                f"{path} has {size} bytes with the CRC {crc:#010x}, and the plan that names it has "
                f"{file.size} bytes with {file.crc:#010x}: the file is damaged. Bring it back "
                "from a copy, or begin the query with a checkpoint of its own"
            )
        self._checked[file.name] = None
        return descriptor

    def _pause(self, effect: effects.PauseSending) -> None:
        now_ms = monotonic_ms()
        if effect.failures == 1:
            self._stands_since_ms = now_ms
        stood_ms = now_ms - self._stands_since_ms
        if stood_ms >= self._limit_ms:
            raise SinkInterrupted(
                f"the micro-batch came no further for {stood_ms} ms (delivery.timeout.ms): "
                f"{effect.reason}. It is frozen: start the query again when the brokers are there, "
                "and it goes on where it stopped"
            ) from effect.reason
        time.sleep(min(PAUSE_MS << min(effect.failures - 1, 10), PAUSE_MS_MAX) / 1000)


def topic_ids_of(plan: Plan) -> dict[str, bytes]:
    """Return the ids of topics as requests have them, as far as the cluster knew any."""
    return {
        name: bytes.fromhex(topic_id)
        for name, topic_id in plan.topic_ids.items()
        if topic_id != NO_TOPIC_ID
    }
