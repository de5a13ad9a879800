"""Administrator of topics: creates and deletes topics and keeps asking which there are."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    decode_create_topics_response,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
    decode_delete_topics_response,
)
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    decode_describe_topic_partitions_response,
)
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    decode_init_producer_id_response,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    decode_metadata_response,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    decode_offset_for_leader_epoch_response,
)
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import (
    EpochEnd,
    MetadataSeen,
    Place,
    TopicChangeSeen,
    TopicSeen,
)
from tarry.simulation.clients.simulated_client import Delay, Query, Script, ScriptedClient
from tarry.simulation.exchange import ObservedExchange

_TIMEOUT_MS: Final = 3_000
_RETRY_MS: Final = 30
_PRODUCER_ID_WAIT_MS: Final = 5_000
# From this version on a metadata answer names topic ids.
_VERSION_OF_TOPIC_IDS: Final = 10

# Errors after which the same request is worth another try.
_PASSING: Final = (errors.REQUEST_TIMED_OUT, errors.KAFKA_STORAGE_ERROR)


class TopicPlan:
    """Topic to be created."""

    def __init__(self, name: str, partitions: int, *, is_lasting: bool) -> None:
        self.name = name
        self.partitions = partitions
        self.is_lasting = is_lasting
        self.configs: dict[str, str] = {}
        self.replication_factor = 1


class TopicAdmin(ScriptedClient):
    """Client that creates the lasting topics, then creates and deletes the passing ones."""

    def __init__(
        self, context: RunContext, name: str, plans: list[TopicPlan], *, pause_ms_max: int = 300
    ) -> None:
        super().__init__(context, name)
        self._pause_ms_max = pause_ms_max
        self._lasting = [plan for plan in plans if plan.is_lasting]
        self._passing = [plan for plan in plans if not plan.is_lasting]

    def script(self) -> Script:
        context = self.context
        for plan in self._lasting:
            yield from self._create(plan)
        while not context.is_quiet:
            yield Delay(20 + context.random.randrange(self._pause_ms_max))
            kind = context.random.randrange(7)
            if kind == 0 and self._passing:
                plan = self._passing[context.random.randrange(len(self._passing))]
                topic = context.topic_by_name(plan.name)
                if topic is not None and topic.is_alive:
                    yield from self._delete(topic)
                else:
                    yield from self._create(plan)
            elif kind == 1:
                yield from self._ask_epoch_end()
            elif kind == 2:
                yield from self._ask_producer_id()
            elif kind == 3:
                yield from self._describe()
            else:
                yield from self._look()

    def _create(self, plan: TopicPlan) -> Script:
        context = self.context
        change = TopicChangeSeen(plan.name, b"", is_creation=True, sent_turn=context.network.turn)
        while True:
            outcome = yield self._create_question(plan)
            if outcome is not None and isinstance(outcome.answer, CreateTopicsResponse):
                result = outcome.answer.topics[0]
                if result.error_code == errors.NONE:
                    change.exchange = outcome.exchange
                    break
                if result.error_code == errors.TOPIC_ALREADY_EXISTS:
                    # An earlier try has made it, or an older topic of its name is being removed.
                    seen = len(context.history.metadata)
                    yield from self._look()
                    is_news = len(context.history.metadata) > seen
                    if is_news and self._newest_id(plan.name) is not None:
                        change.exchange = outcome.exchange
                        break
                elif result.error_code == errors.REQUEST_TIMED_OUT:
                    context.check_time_out(outcome.exchange, f"the creation of {plan.name}")
                elif result.error_code not in _PASSING:
                    context.history.violate(
                        f"the creation of {plan.name} got {error_name(result.error_code)}: "
                        f"{result.error_message}"
                    )
            yield Delay(_RETRY_MS)
        while (topic_id := self._last_seen_id(plan.name, change)) is None:
            yield from self._look()
            yield Delay(_RETRY_MS)
        change.topic_id = topic_id
        if "retention.bytes" not in plan.configs:
            context.history.kept_topics[topic_id] = None
        context.history.topic_changes.append(change)
        context.topics.append(
            KnownTopic(plan.name, topic_id, plan.partitions, is_lasting=plan.is_lasting)
        )

    def _last_seen_id(self, name: str, change: TopicChangeSeen) -> bytes | None:
        """Return the topic's id in metadata that was asked for after the change, or None."""
        metadata = self.context.history.metadata
        if not metadata or change.exchange is None:
            return None
        if metadata[-1].exchange.delivered_turn <= change.exchange.answered_turn:
            return None
        topic_id = self._newest_id(name)
        if topic_id is None:
            self.context.history.violate(f"topic {name} was created and is not in the metadata")
        return topic_id

    def _newest_id(self, name: str) -> bytes | None:
        """Return the topic's id in the newest metadata, or None."""
        metadata = self.context.history.metadata
        for topic in metadata[-1].topics if metadata else []:
            if topic.name == name:
                return topic.topic_id
        return None

    def _create_question(self, plan: TopicPlan) -> Query:
        configs = [
            CreatableTopicConfig(name=key, value=plan.configs[key]) for key in sorted(plan.configs)
        ]
        topic = CreatableTopic(
            name=plan.name,
            num_partitions=plan.partitions,
            replication_factor=plan.replication_factor,
            configs=configs,
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
        return Query(
            api_keys.CREATE_TOPICS,
            self.context.version(2, 7),
            request,
            decode_create_topics_response,
            _TIMEOUT_MS,
        )

    def _delete(self, topic: KnownTopic) -> Script:
        context = self.context
        topic.is_alive = False
        change = TopicChangeSeen(
            topic.name, topic.topic_id, is_creation=False, sent_turn=context.network.turn
        )
        context.history.topic_changes.append(change)
        while True:
            version = context.version(1, 6)
            request = DeleteTopicsRequest(timeout_ms=_TIMEOUT_MS)
            if version >= 6:
                request.topics = [DeleteTopicState(name=None, topic_id=topic.topic_id)]
            else:
                request.topic_names = [topic.name]
            outcome = yield Query(
                api_keys.DELETE_TOPICS,
                version,
                request,
                decode_delete_topics_response,
                _TIMEOUT_MS,
            )
            if outcome is not None and isinstance(outcome.answer, DeleteTopicsResponse):
                code = outcome.answer.responses[0].error_code
                if code in (
                    errors.NONE,
                    errors.UNKNOWN_TOPIC_OR_PARTITION,
                    errors.UNKNOWN_TOPIC_ID,
                ):
                    change.exchange = outcome.exchange
                    return
                if code == errors.REQUEST_TIMED_OUT:
                    context.check_time_out(outcome.exchange, f"the deletion of {topic.name}")
                if code not in _PASSING:
                    context.history.violate(f"the deletion of {topic.name} got {error_name(code)}")
            yield Delay(_RETRY_MS)

    def _look(self) -> Script:
        outcome = yield metadata_query(self.context)
        if outcome is not None and isinstance(outcome.answer, MetadataResponse):
            take_metadata(self.context, outcome.exchange, outcome.answer)

    def _describe(self) -> Script:
        """Ask for metadata by the newer API."""
        outcome = yield Query(
            api_keys.DESCRIBE_TOPIC_PARTITIONS,
            0,
            DescribeTopicPartitionsRequest(topics=[]),
            decode_describe_topic_partitions_response,
        )
        if outcome is not None and isinstance(outcome.answer, DescribeTopicPartitionsResponse):
            topics = [
                TopicSeen(
                    topic.name or "",
                    topic.topic_id,
                    [(part.partition_index, part.leader_epoch) for part in topic.partitions],
                )
                for topic in outcome.answer.topics
            ]
            self.context.history.metadata.append(
                MetadataSeen(outcome.exchange, self.context.life, topics)
            )

    def _ask_producer_id(self) -> Script:
        """Ask for a producer id that stays unused, for the check that none is given out twice."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        outcome = yield Query(
            api_keys.INIT_PRODUCER_ID,
            self.context.version(0, 5),
            request,
            decode_init_producer_id_response,
            _PRODUCER_ID_WAIT_MS,
        )
        if outcome is not None and isinstance(outcome.answer, InitProducerIdResponse):
            answer = outcome.answer
            if answer.error_code == errors.NONE:
                self.context.history.producer_ids.append(
                    (answer.producer_id, answer.producer_epoch, self.name)
                )

    def _ask_epoch_end(self) -> Script:
        context = self.context
        topics = context.alive_topics()
        if not topics:
            return
        topic = topics[context.random.randrange(len(topics))]
        place = topic.places()[context.random.randrange(topic.partitions)]
        epoch = context.random.randrange(context.leader_epochs.get(place, 0) + 1)
        outcome = yield epoch_end_query(context, [(topic, place, epoch)])
        if outcome is not None and isinstance(outcome.answer, OffsetForLeaderEpochResponse):
            take_epoch_ends(context, outcome.exchange, {place: epoch}, outcome.answer)


def metadata_query(context: RunContext) -> Query:
    """Return a query for the metadata of all topics, with their ids."""
    return Query(
        api_keys.METADATA,
        context.version(_VERSION_OF_TOPIC_IDS, 13),
        MetadataRequest(topics=None, allow_auto_topic_creation=False),
        decode_metadata_response,
    )


def take_metadata(
    context: RunContext, exchange: ObservedExchange, answer: MetadataResponse
) -> MetadataSeen:
    """Note the topics of an answer to Metadata."""
    topics: list[TopicSeen] = []
    for topic in answer.topics:
        epochs = [(part.partition_index, part.leader_epoch) for part in topic.partitions]
        topics.append(TopicSeen(topic.name or "", topic.topic_id, epochs))
        for index, epoch in epochs:
            place = (topic.topic_id, index)
            if epoch > context.leader_epochs.get(place, -1):
                context.leader_epochs[place] = epoch
    seen = MetadataSeen(exchange, context.life, topics)
    context.history.metadata.append(seen)
    return seen


def epoch_end_query(context: RunContext, asked: list[tuple[KnownTopic, Place, int]]) -> Query:
    """Return a query OffsetForLeaderEpoch for these partitions and epochs."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for topic, place, epoch in asked:
        partition = OffsetForLeaderPartition(partition=place[1], leader_epoch=epoch)
        known = topics.get(topic.name)
        if known is None:
            topics[topic.name] = OffsetForLeaderTopic(topic=topic.name, partitions=[partition])
        else:
            known.partitions.append(partition)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))
    return Query(
        api_keys.OFFSET_FOR_LEADER_EPOCH,
        context.version(2, 4),
        request,
        decode_offset_for_leader_epoch_response,
    )


def take_epoch_ends(
    context: RunContext,
    exchange: ObservedExchange,
    asked: dict[Place, int],
    answer: OffsetForLeaderEpochResponse,
) -> None:
    """Note the ends of epochs."""
    for topic_answer in answer.topics:
        for partition in topic_answer.partitions:
            topic = context.topic_by_name(topic_answer.topic)
            if topic is None or not topic.is_alive or partition.error_code != errors.NONE:
                continue
            place = (topic.topic_id, partition.partition)
            end = EpochEnd(
                place, exchange, asked[place], partition.leader_epoch, partition.end_offset
            )
            # The end of an older epoch is final.  The newest epoch ends with the log, of which
            # unflushed records may be lost.
            newest = context.leader_epochs.get(place, -1)
            end.is_certain = context.is_still or partition.leader_epoch < newest
            end.is_newest = partition.leader_epoch >= newest
            context.history.epoch_ends.append(end)
