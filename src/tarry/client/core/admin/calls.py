"""The calls of an admin client: what each request asks, and what its answer means."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.errors import NONE, NOT_CONTROLLER, UNKNOWN_TOPIC_OR_PARTITION
from tarry.client.core.metadata_answer import MetadataAnswer, read_in_steps, read_metadata
from tarry.client.core.refresh import metadata_request
from tarry.client.core.routing import ANYONE, CONTROLLER
from tarry.client.core.topic import BrokerMetadata, Topic
from tarry.client.errors import BrokerError, UnknownTopic, broker_error
from tarry.link.errand import Call
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.link.versions import VersionTable, version_table, versions_request
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import (
    ApiVersionsResponse,
    decode_api_versions_response,
)
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
    DeleteTopicsResponse,
    DeleteTopicState,
    decode_delete_topics_response,
)
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    decode_describe_cluster_response,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    decode_describe_configs_response,
)
from tarry.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    decode_update_features_response,
)

# Kafka's types of resources that have settings.
RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4

# Kafka's sources of settings.
SOURCES: Final = {
    1: "topic",
    2: "broker (dynamic)",
    3: "cluster (dynamic)",
    4: "broker",
    5: "default",
    6: "broker (logger)",
    7: "client metrics",
    8: "group",
}

# First version whose requests delete topics by state (a name or an id).
DELETE_VERSION_WITH_STATES: Final = 6


class NewTopic(NamedTuple):
    """A topic to create; a count of -1 means the broker's default, an assignment names the
    replicas."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    configs: dict[str, str] = {}
    assignment: list[list[int]] | None = None


class TopicOutcome(NamedTuple):
    """Outcome for one topic of a request; `error` is None if the request succeeded for it."""

    name: str
    error: ClientError | None
    partition_count: int = -1
    replication_factor: int = -1


# Kafka's types of settings.
CONFIG_TYPES: Final = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}


class ConfigSynonym(NamedTuple):
    """Place where a setting may be set, with its value there."""

    name: str
    value: str | None
    source: str


class ConfigEntry(NamedTuple):
    """Entry for one setting of a topic or broker.  Type, documentation and synonyms (the places
    where it may be set, in order of precedence) are empty if the broker does not report them."""

    name: str
    value: str | None
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    type_name: str = ""
    documentation: str = ""
    synonyms: tuple[ConfigSynonym, ...] = ()


class ClusterDescription(NamedTuple):
    """Cluster with its brokers; `fenced_ids` are the brokers that are registered but not in use."""

    cluster_id: str
    controller_id: int
    brokers: list[BrokerMetadata]
    fenced_ids: list[int]


class CreateTopics(Call[CreateTopicsResponse, list[TopicOutcome]]):
    """Result: a list of TopicOutcome."""

    def __init__(self, topics: list[NewTopic], *, validate_only: bool) -> None:
        super().__init__(api_keys.CREATE_TOPICS, decode_create_topics_response, CONTROLLER)
        self.topics = topics
        self.validate_only = validate_only

    def build(self, version: int) -> Message:
        return CreateTopicsRequest(
            topics=[_creatable(topic) for topic in self.topics],
            timeout_ms=self.timeout_ms,
            validate_only=self.validate_only,
        )

    def interpret(self, response: CreateTopicsResponse) -> list[TopicOutcome]:
        told: dict[str, TopicOutcome] = {}
        for topic in response.topics:
            sentence = topic.error_message or f"topic {topic.name} was not created"
            error = topic_error(topic.error_code, sentence)
            told[topic.name] = TopicOutcome(
                topic.name, error, topic.num_partitions, topic.replication_factor
            )
        return [told.get(topic.name) or _untold(topic.name) for topic in self.topics]


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(index, broker_ids)
        for index, broker_ids in enumerate(topic.assignment or [])
    ]
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assignments else topic.partition_count,
        replication_factor=-1 if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
    )


def topic_error(code: int, sentence: str) -> ClientError | None:
    """Return the error of one topic, None for NONE.

    NOT_CONTROLLER is raised instead, so that the whole request is retried.
    """
    if code == NONE:
        return None
    if code == NOT_CONTROLLER:
        raise BrokerError(code, sentence)
    return broker_error(code, sentence)


def left_out(what: str) -> ClientError:
    """Make the error for something that was requested and is missing in the answer."""
    return ClientError(f"the broker's answer leaves {what} out: nothing is known of its outcome")


def _untold(name: str) -> TopicOutcome:
    return TopicOutcome(name, left_out(f"topic {name!r}"))


def unknown_topic(name: str) -> UnknownTopic:
    """Make the error of an unknown topic, for calls that return it as a result."""
    return UnknownTopic(f"topic {name!r} does not exist")


class DeleteTopics(Call[DeleteTopicsResponse, list[TopicOutcome]]):
    """Result: a list of TopicOutcome."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(api_keys.DELETE_TOPICS, decode_delete_topics_response, CONTROLLER)
        self.names = names

    def build(self, version: int) -> Message:
        if version >= DELETE_VERSION_WITH_STATES:
            states = [DeleteTopicState(name) for name in self.names]
            return DeleteTopicsRequest(topics=states, timeout_ms=self.timeout_ms)
        return DeleteTopicsRequest(topic_names=list(self.names), timeout_ms=self.timeout_ms)

    def interpret(self, response: DeleteTopicsResponse) -> list[TopicOutcome]:
        told: dict[str, TopicOutcome] = {}
        for answer in response.responses:
            name = answer.name or ""
            sentence = answer.error_message or f"topic {name!r} was not deleted"
            if answer.error_code == UNKNOWN_TOPIC_OR_PARTITION:
                sentence = f"topic {name!r} does not exist"
            told[name] = TopicOutcome(name, topic_error(answer.error_code, sentence))
        return [told.get(name) or _untold(name) for name in self.names]


class TopicList(Call[MetadataAnswer, list[Topic]]):
    """Result: topics with their partitions and errors, by name; all topics if `names` is None.

    The request never creates a topic.
    """

    def __init__(self, names: list[str] | None) -> None:
        super().__init__(api_keys.METADATA, read_metadata, ANYONE)
        self.decode_in_steps = read_in_steps
        self.names = names

    def build(self, version: int) -> Message:
        return metadata_request(self.names, version)

    def interpret(self, response: MetadataAnswer) -> list[Topic]:
        return sorted(response.topics, key=_name_of)


def _name_of(topic: Topic) -> str:
    return topic.name


# First version in which brokers send the documentation of settings.
VERSION_WITH_DOCUMENTATION: Final = 3


class DescribeConfigs(Call[DescribeConfigsResponse, list[ConfigEntry] | ClientError]):
    """Result: the settings of one topic or broker by name, or the error that the topic does not
    exist.

    An empty name of a broker means the settings of all brokers.  `explain` adds documentation and
    synonyms.
    """

    def __init__(self, resource_type: int, name: str, *, explain: bool = False) -> None:
        target = int(name) if resource_type == RESOURCE_BROKER and name else ANYONE
        super().__init__(api_keys.DESCRIBE_CONFIGS, decode_describe_configs_response, target)
        self.resource_type = resource_type
        self.name = name
        self.explain = explain

    def build(self, version: int) -> Message:
        resource = DescribeConfigsResource(self.resource_type, self.name, None)
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=self.explain)
        if version >= VERSION_WITH_DOCUMENTATION:
            request.include_documentation = self.explain
        return request

    def interpret(self, response: DescribeConfigsResponse) -> list[ConfigEntry] | ClientError:
        entries: list[ConfigEntry] = []
        if not response.results:
            raise left_out(f"the settings of {self.name or 'all brokers'}")
        for result in response.results:
            if result.error_code == UNKNOWN_TOPIC_OR_PARTITION:
                return unknown_topic(self.name)
            if result.error_code != NONE:
                sentence = result.error_message or f"the settings of {self.name} cannot be read"
                raise BrokerError(result.error_code, sentence)
            entries.extend(_config_entry(entry) for entry in result.configs)
        return sorted(entries)


def _config_entry(answer: DescribeConfigsResourceResult) -> ConfigEntry:
    source = _source(answer.config_source)
    return ConfigEntry(
        answer.name,
        answer.value,
        source,
        source == "default",
        answer.read_only,
        answer.is_sensitive,
        CONFIG_TYPES.get(answer.config_type, ""),
        answer.documentation or "",
        tuple(ConfigSynonym(one.name, one.value, _source(one.source)) for one in answer.synonyms),
    )


def _source(number: int) -> str:
    return SOURCES.get(number, "unknown")


class DescribeCluster(Call[DescribeClusterResponse, ClusterDescription]):
    """Result: ClusterDescription."""

    def __init__(self) -> None:
        super().__init__(api_keys.DESCRIBE_CLUSTER, decode_describe_cluster_response, ANYONE)

    def build(self, version: int) -> Message:
        request = DescribeClusterRequest()
        if version >= VERSION_WITH_FENCED:
            request.include_fenced_brokers = True
        return request

    def interpret(self, response: DescribeClusterResponse) -> ClusterDescription:
        if response.error_code != NONE:
            sentence = response.error_message or "the cluster cannot be described"
            raise BrokerError(response.error_code, sentence)
        brokers = [
            BrokerMetadata(one.broker_id, Address(one.host, one.port), one.rack)
            for one in response.brokers
        ]
        brokers.sort(key=_id_of)
        fenced = sorted(one.broker_id for one in response.brokers if one.is_fenced)
        return ClusterDescription(response.cluster_id, response.controller_id, brokers, fenced)


VERSION_WITH_FENCED: Final = 2


def _id_of(broker: BrokerMetadata) -> int:
    return broker.broker_id


class FeatureDescription(NamedTuple):
    """Feature that brokers agree on, with its level in force and the levels that the broker
    supports."""

    name: str
    # 0 if no level is in force.
    level: int
    level_min: int
    level_max: int


class DescribeFeatures(Call[ApiVersionsResponse, list[FeatureDescription]]):
    """Result: the features that the broker supports or that are in force, by name."""

    def __init__(self, broker_id: int = ANYONE) -> None:
        super().__init__(api_keys.API_VERSIONS, decode_api_versions_response, broker_id)

    def build(self, version: int) -> Message:
        return versions_request()

    def interpret(self, response: ApiVersionsResponse) -> list[FeatureDescription]:
        if response.error_code != NONE:
            raise BrokerError(response.error_code, "the broker does not tell its features")
        known = {
            one.name: (one.min_version, one.max_version) for one in response.supported_features
        }
        in_force = {one.name: one.max_version_level for one in response.finalized_features}
        return [
            FeatureDescription(name, in_force.get(name, 0), *known.get(name, (0, 0)))
            for name in sorted({**known, **in_force})
        ]


class UpdateFeatures(Call[UpdateFeaturesResponse, None]):
    """Call that changes levels of features, either all of them or none.  No result."""

    def __init__(
        self, levels: dict[str, int], *, may_downgrade: bool = False, validate_only: bool = False
    ) -> None:
        super().__init__(api_keys.UPDATE_FEATURES, decode_update_features_response, CONTROLLER)
        self.levels = levels
        self.may_downgrade = may_downgrade
        self.validate_only = validate_only

    def build(self, version: int) -> Message:
        return UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(name, level, upgrade_type=2 if self.may_downgrade else 1)
                for name, level in self.levels.items()
            ],
            validate_only=self.validate_only,
        )

    def interpret(self, response: UpdateFeaturesResponse) -> None:
        errors = [(response.error_code, response.error_message)]
        errors += [(one.error_code, one.error_message) for one in response.results]
        for code, message in errors:
            if code != NONE:
                raise BrokerError(code, message or "no level was changed")


class ApiVersions(Call[ApiVersionsResponse, VersionTable]):
    """Result: the versions that a broker supports, by API key."""

    def __init__(self, broker_id: int = ANYONE) -> None:
        super().__init__(api_keys.API_VERSIONS, decode_api_versions_response, broker_id)

    def build(self, version: int) -> Message:
        return versions_request()

    def interpret(self, response: ApiVersionsResponse) -> VersionTable:
        if response.error_code != NONE:
            raise BrokerError(response.error_code, "the broker does not tell its versions")
        return version_table(response)
