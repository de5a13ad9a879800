"""Remaker: makes a topic, has it written, deletes it and makes it again under the same name.

A broker that was away meanwhile finds a directory with that name on its disk, of an older topic.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    decode_create_topics_response,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
    decode_delete_topics_response,
)
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    decode_incremental_alter_configs_response,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
    decode_produce_response,
)
from tarry.records.builder import BatchBuilder
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, RunClient, Script
from tarry.wire.reader import window_of

MADE_AGAIN: Final = "again"
_TIMEOUT_MS: Final = 2_000
_CREATE_VERSION: Final = 7
_DELETE_VERSION: Final = 6
# From this version on a produce names its topic by id: a later topic does not get its records.
_PRODUCE_VERSION: Final = 13
_LIFE_MS_MAX: Final = 1_500
_PAUSE_MS_MAX: Final = 300
_VALUE_BYTES_MAX: Final = 400
# Kafka's numbers for a resource that is a topic, and for an operation that sets a setting.
_TOPIC_RESOURCE: Final = 2
_SET: Final = 0


class MadeTopic:
    """Topic that is made again and again; its id is b"" while there is none."""

    def __init__(self) -> None:
        self.topic_id = b""
        # Number of times that it was made.
        self.count = 0
        self.partitions = 1
        self.life_ms_max = _LIFE_MS_MAX


class Remaker(RunClient):
    """Client of one broker that makes and deletes the topic, until the run is quiet."""

    def __init__(
        self, context: RunContext, name: str, run: RunContext, made: MadeTopic, replicas: int
    ) -> None:
        super().__init__(context, name, run)
        self._made = made
        self._replicas = replicas

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            before = self._made.count
            yield from self._make()
            if self._made.count > before:
                life_ms = 1 + random.randrange(self._made.life_ms_max)
                if self._made.partitions > 1:
                    yield Delay(1 + random.randrange(life_ms))
                    yield from self._change()
                yield Delay(life_ms)
            # The topic may exist even if the answer to its creation was lost.
            yield from self._delete()
            yield Delay(1 + random.randrange(_PAUSE_MS_MAX))

    def _make(self) -> Script:
        """Ask for the topic once; the topic may be made although the answer is lost."""
        random = self.context.random
        timestamps = CreatableTopicConfig("message.timestamp.after.max.ms", str(1 << 62))
        # The replicas are named, so that a broker that is away just now gets one, too.
        replicas = list(range(1, self._replicas + 1))
        random.shuffle(replicas)
        assignments = [CreatableReplicaAssignment(0, replicas)]
        for index in range(1, self._made.partitions):
            turned = [*replicas[index:], *replicas[:index]]
            assignments.append(CreatableReplicaAssignment(index, turned))
        topic = CreatableTopic(MADE_AGAIN, -1, -1, assignments, [timestamps])
        request = CreateTopicsRequest([topic], _TIMEOUT_MS)
        outcome = yield Query(
            api_keys.CREATE_TOPICS,
            _CREATE_VERSION,
            request,
            decode_create_topics_response,
            _TIMEOUT_MS,
        )
        if outcome is None or not isinstance(outcome.answer, CreateTopicsResponse):
            return
        answer = outcome.answer.topics[0]
        if answer.error_code == errors.NONE:
            self._made.topic_id = bytes(answer.topic_id)
            self._made.count += 1

    def _change(self) -> Script:
        """Change a setting that every replica has to follow."""
        size = str(100_000 + self.context.random.randrange(100_000))
        configs = [AlterableConfig("max.message.bytes", _SET, size)]
        resource = AlterConfigsResource(_TOPIC_RESOURCE, MADE_AGAIN, configs)
        yield Query(
            api_keys.INCREMENTAL_ALTER_CONFIGS,
            1,
            IncrementalAlterConfigsRequest([resource]),
            decode_incremental_alter_configs_response,
            _TIMEOUT_MS,
        )

    def _delete(self) -> Script:
        self._made.topic_id = b""
        request = DeleteTopicsRequest([DeleteTopicState(MADE_AGAIN)], timeout_ms=_TIMEOUT_MS)
        yield Query(
            api_keys.DELETE_TOPICS,
            _DELETE_VERSION,
            request,
            decode_delete_topics_response,
            _TIMEOUT_MS,
        )


class MadeTopicWriter(RunClient):
    """Client of one broker that writes to the topic; most of what it sends is refused."""

    def __init__(self, context: RunContext, name: str, run: RunContext, made: MadeTopic) -> None:
        super().__init__(context, name, run)
        self._made = made
        self._count = 0

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            yield Delay(1 + random.randrange(_PAUSE_MS_MAX))
            topic_id = self._made.topic_id
            if not topic_id:
                continue
            self._count += 1
            builder = BatchBuilder()
            value = f"{self.name} {self._count} of {topic_id.hex()} ".encode()
            value += b"." * random.randrange(_VALUE_BYTES_MAX)
            builder.append(self.context.clock.now_wall_ms, None, value)
            batch = PartitionProduceData(0, window_of(builder.build()))
            data = TopicProduceData(topic_id=topic_id, partition_data=[batch])
            request = ProduceRequest(None, -1, _TIMEOUT_MS, [data])
            yield Query(
                api_keys.PRODUCE, _PRODUCE_VERSION, request, decode_produce_response, _TIMEOUT_MS
            )
