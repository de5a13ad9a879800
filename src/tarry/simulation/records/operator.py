"""Operator: deletes records, lets topics grow and changes settings during the run.

An acknowledged change must hold for all later queries, whatever happens to the broker in between.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.protocol import api_keys
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    decode_create_partitions_response,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    decode_delete_records_response,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    decode_describe_configs_response,
)
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    decode_incremental_alter_configs_response,
)
from tarry.protocol.messages.list_offsets import ListOffsetsResponse
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import Growth, RecordsDeletion, Watermarks, place_name
from tarry.simulation.clients.simulated_client import Delay, Query, Script, ScriptedClient, Steps
from tarry.simulation.records.reader import EARLIEST, list_offsets_answer, offsets_query

_TIMEOUT_MS: Final = 3_000
_RETRY_MS: Final = 30
_PARTITIONS_MAX: Final = 5

# Errors after which the same request is worth another try.
_PASSING: Final = (errors.REQUEST_TIMED_OUT, errors.KAFKA_STORAGE_ERROR)

_SET: Final = 0
_TOPIC: Final = 2
_BROKER: Final = 4
_BROKER_ID: Final = "1"

# Settings to change, with resource type and key: none of them changes how clients must behave.
_CHANGED: Final = (
    (_TOPIC, "segment.ms"),
    (_TOPIC, "index.interval.bytes"),
    (_BROKER, "log.roll.jitter.ms"),
    (_BROKER, "producer.id.expiration.ms"),
)


class Operator(ScriptedClient):
    """Operator that makes one change after the other; no other client sets its settings."""

    def __init__(self, context: RunContext, name: str, *, pause_ms_max: int) -> None:
        super().__init__(context, name)
        self._pause_ms_max = pause_ms_max
        # Values that were acknowledged, by resource type, resource name and key.
        self._values: dict[tuple[int, str, str], str] = {}

    def script(self) -> Script:
        context = self.context
        while not context.is_quiet:
            yield Delay(20 + context.random.randrange(self._pause_ms_max))
            topics = [topic for topic in context.alive_topics() if topic.is_lasting]
            if not topics:
                continue
            topic = topics[context.random.randrange(len(topics))]
            kind = context.random.randrange(6)
            if kind < 2:
                yield from self._delete_records(topic)
            elif kind == 2 and topic.partitions < _PARTITIONS_MAX:
                yield from self._grow(topic)
            elif kind < 5:
                yield from self._change(topic)
            else:
                yield from self._verify()
        yield from self._verify()

    # -- records

    def _delete_records(self, topic: KnownTopic) -> Script:
        context = self.context
        place = topic.places()[context.random.randrange(topic.partitions)]
        end = context.history.acknowledged_ends.get(place, 0)
        # Mostly few records are deleted, so that enough are left to read.
        offset = context.random.randrange(end + 1) if context.is_chance(300) else end // 4
        if context.is_chance(50):
            offset = -1
        deletion = RecordsDeletion(place, offset)
        context.history.deletions.append(deletion)
        partitions = [DeleteRecordsPartition(place[1], offset)]
        outcome = yield Query(
            api_keys.DELETE_RECORDS,
            context.version(0, 2),
            DeleteRecordsRequest([DeleteRecordsTopic(topic.name, partitions)], _TIMEOUT_MS),
            decode_delete_records_response,
            _TIMEOUT_MS,
        )
        if outcome is None or not isinstance(outcome.answer, DeleteRecordsResponse):
            return
        answer = outcome.answer.topics[0].partitions[0]
        if answer.error_code == errors.REQUEST_TIMED_OUT:
            context.check_time_out(outcome.exchange, f"a deletion from {place_name(place)}")
        elif answer.error_code == errors.NONE:
            deletion.low_watermark = answer.low_watermark
            watermarks = Watermarks(place, outcome.exchange)
            watermarks.log_start_offset = answer.low_watermark
            context.history.watermarks.append(watermarks)
        elif answer.error_code != errors.KAFKA_STORAGE_ERROR:
            context.history.violate(
                f"a deletion from {place_name(place)} below offset {offset} got "
                f"{error_name(answer.error_code)}"
            )

    # -- partitions

    def _grow(self, topic: KnownTopic) -> Script:
        context = self.context
        count = topic.partitions + 1
        is_tried = False
        while True:
            wanted = CreatePartitionsTopic(topic.name, count, None)
            outcome = yield Query(
                api_keys.CREATE_PARTITIONS,
                context.version(0, 3),
                CreatePartitionsRequest([wanted], _TIMEOUT_MS),
                decode_create_partitions_response,
                _TIMEOUT_MS,
            )
            if outcome is not None and isinstance(outcome.answer, CreatePartitionsResponse):
                code = outcome.answer.results[0].error_code
                # An earlier try whose answer was lost may have added the partition.
                if code == errors.NONE or (is_tried and code == errors.INVALID_PARTITIONS):
                    context.history.growths.append(Growth(topic.topic_id, count, outcome.exchange))
                    break
                if code == errors.REQUEST_TIMED_OUT:
                    context.check_time_out(outcome.exchange, f"the growth of {topic.name}")
                elif code not in _PASSING:
                    context.history.violate(f"the growth of {topic.name} got {error_name(code)}")
            is_tried = True
            yield Delay(_RETRY_MS)
        while not (yield from self._is_there(topic, count - 1)):
            yield Delay(_RETRY_MS)
        topic.partitions = count

    def _is_there(self, topic: KnownTopic, index: int) -> Steps[bool]:
        """Return true if the partition answers already: a disk may have refused its directory."""
        query = offsets_query(self.context, topic, (topic.topic_id, index), EARLIEST)
        outcome = yield query
        if outcome is None or not isinstance(outcome.answer, ListOffsetsResponse):
            return False
        told = list_offsets_answer(outcome.answer, topic.name, index)
        return told is not None and told[0] == errors.NONE

    # -- settings

    def _change(self, topic: KnownTopic) -> Script:
        context = self.context
        kind, key = _CHANGED[context.random.randrange(len(_CHANGED))]
        name = topic.name if kind == _TOPIC else ("", _BROKER_ID)[context.random.randrange(2)]
        value = str(1_000_000_000 + context.random.randrange(1_000))
        changes = [AlterableConfig(key, _SET, value)]
        while True:
            outcome = yield Query(
                api_keys.INCREMENTAL_ALTER_CONFIGS,
                context.version(0, 1),
                IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, changes)]),
                decode_incremental_alter_configs_response,
                # The broker's own bound on the wait: the request has none.
                30_000,
            )
            if outcome is not None and isinstance(outcome.answer, IncrementalAlterConfigsResponse):
                answer = outcome.answer.responses[0]
                if answer.error_code == errors.NONE:
                    self._values[kind, name, key] = value
                    return
                if answer.error_code not in _PASSING:
                    context.history.violate(
                        f"{key}={value} of {name!r} got {error_name(answer.error_code)}: "
                        f"{answer.error_message}"
                    )
            yield Delay(_RETRY_MS)

    def _verify(self) -> Script:
        """Check that DescribeConfigs returns the acknowledged values."""
        context = self.context
        resources: dict[tuple[int, str], list[str]] = {}
        for kind, name, key in self._values:
            resources.setdefault((kind, name), []).append(key)
        asked = [
            DescribeConfigsResource(kind, name, keys) for (kind, name), keys in resources.items()
        ]
        outcome = yield Query(
            api_keys.DESCRIBE_CONFIGS,
            context.version(1, 4),
            DescribeConfigsRequest(asked),
            decode_describe_configs_response,
        )
        if outcome is None or not isinstance(outcome.answer, DescribeConfigsResponse):
            return
        for result in outcome.answer.results:
            told = {each.name: each.value for each in result.configs}
            resource = (result.resource_type, result.resource_name)
            for (kind, name, key), value in self._values.items():
                if (kind, name) == resource and told.get(key) != value:
                    context.history.violate(
                        f"{key} of {name!r} was set to {value} and is {told.get(key)}"
                    )
