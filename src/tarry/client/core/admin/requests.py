"""Requests of an admin client: for each public method the calls to send and the result to return.

Arguments are checked before a request is sent; an error of the whole request is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from tarry.base.errors import ELECTION_NOT_NEEDED, NONE, UNKNOWN_TOPIC_OR_PARTITION
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.arguments import (
    changes_of,
    check_assignment,
    check_broker_id,
    check_group_id,
    check_number,
    ends_of,
    feature_levels,
    new_topics_of,
    partitions_by_topic,
    targets_of,
)
from tarry.client.core.admin.calls import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    ApiVersions,
    ClusterDescription,
    ConfigEntry,
    CreateTopics,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    DescribeFeatures,
    FeatureDescription,
    NewTopic,
    TopicList,
    TopicOutcome,
    UpdateFeatures,
    left_out,
)
from tarry.client.core.admin.configs import ChangeConfigs, ConfigChange
from tarry.client.core.admin.epochs import FoundEpochs, epoch_ends
from tarry.client.core.admin.groups import (
    GroupDescription,
    GroupOutcome,
    ListedGroup,
    delete_groups,
    describe_groups,
    list_groups,
)
from tarry.client.core.admin.log_dirs import LogDirectory, describe_log_dirs
from tarry.client.core.admin.memory import GroupMemory, recall_group
from tarry.client.core.admin.offsets import (
    PartitionErrors,
    commit_offsets,
    delete_offsets,
    fetch_offsets,
)
from tarry.client.core.admin.partitions import CreatePartitions, DeletedRecords, delete_records
from tarry.client.core.admin.producers import DescribedProducers, describe_producers
from tarry.client.core.admin.replicas import (
    AlterReassignments,
    ElectLeaders,
    ListReassignments,
    Reassignment,
    UnregisterBroker,
)
from tarry.client.core.arguments import epochs_of, names_of, places_of
from tarry.client.core.connections import Connections
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.group.offsets.what import committed_offsets_of
from tarry.client.core.metadata import refusal_text
from tarry.client.core.outgoing import check_topic
from tarry.client.core.schedule.calendars import ComparedCalendar, compare_calendars
from tarry.client.core.schedule.requests import ScheduleRequests
from tarry.client.core.topic import Topic
from tarry.client.errors import BrokerError, UnknownTopic, raise_first
from tarry.link.errand import A, Call, Steps
from tarry.link.errors import ClientError
from tarry.link.versions import VersionTable

K = TypeVar("K")


class AdminRequests:
    """Maker of the steps of each request, for `AdminCore.begin_errand`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.schedules = ScheduleRequests(connections)

    # --- Topics

    def list_topics(self) -> Steps[list[Topic]]:
        return _result_of(TopicList(None))

    def describe_topics(self, names: Iterable[str]) -> Steps[list[Topic]]:
        return _described(names_of("describe_topics", names))

    def find_topics(self, names: Iterable[str]) -> Steps[dict[str, Topic]]:
        return _found(list(dict.fromkeys(names_of("find_topics", names))))

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, outcomes: bool = False
    ) -> Steps[list[TopicOutcome]]:
        call = CreateTopics(new_topics_of(topics), validate_only=validate_only)
        return _done(_result_of(call), _errors_of_all, outcomes)

    def delete_topics(
        self, names: Iterable[str], *, outcomes: bool = False
    ) -> Steps[list[TopicOutcome]]:
        call = DeleteTopics(names_of("delete_topics", names))
        return _done(_result_of(call), _errors_of_all, outcomes)

    def create_partitions(
        self,
        topic: str,
        count: int,
        assignment: list[list[int]] | None,
        *,
        validate_only: bool = False,
        outcomes: bool = False,
    ) -> Steps[TopicOutcome]:
        check_topic(topic)
        check_number("create_partitions: count", count, 1)
        if assignment is not None:
            check_assignment("create_partitions", assignment)
        call = CreatePartitions(topic, count, assignment, validate_only=validate_only)
        return _done(_result_of(call), lambda outcome: [outcome.error], outcomes)

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, outcomes: bool = False
    ) -> Steps[DeletedRecords]:
        return _done(delete_records(self._connections, ends_of(offsets)), _errors_in, outcomes)

    # --- Settings

    def describe_topic_configs(self, topic: str, *, explain: bool) -> Steps[list[ConfigEntry]]:
        check_topic(topic)
        return _result_or_error_of(DescribeConfigs(RESOURCE_TOPIC, topic, explain=explain))

    def describe_broker_configs(
        self, broker_id: int | None, *, explain: bool
    ) -> Steps[list[ConfigEntry]]:
        check_broker_id("describe_broker_configs", broker_id)
        call = DescribeConfigs(RESOURCE_BROKER, _name_of(broker_id), explain=explain)
        return _result_or_error_of(call)

    def change_topic_configs(
        self, topic: str, changes: Iterable[ConfigChange], *, validate_only: bool
    ) -> Steps[None]:
        check_topic(topic)
        wanted = changes_of("change_topic_configs", changes)
        call = ChangeConfigs(RESOURCE_TOPIC, topic, wanted, validate_only=validate_only)
        return _result_or_error_of(call)

    def change_broker_configs(
        self, broker_id: int | None, changes: Iterable[ConfigChange], *, validate_only: bool
    ) -> Steps[None]:
        check_broker_id("change_broker_configs", broker_id)
        wanted = changes_of("change_broker_configs", changes)
        name = _name_of(broker_id)
        call = ChangeConfigs(RESOURCE_BROKER, name, wanted, validate_only=validate_only)
        return _result_or_error_of(call)

    # --- Groups

    def list_groups(self, states: Iterable[str], types: Iterable[str]) -> Steps[list[ListedGroup]]:
        wanted = names_of("list_groups", states), names_of("list_groups", types)
        return list_groups(self._connections, *wanted)

    def describe_groups(
        self, group_ids: Iterable[str]
    ) -> Steps[dict[str, GroupDescription | ClientError]]:
        return describe_groups(self._connections, names_of("describe_groups", group_ids))

    def delete_groups(
        self, group_ids: Iterable[str], *, outcomes: bool = False
    ) -> Steps[list[GroupOutcome]]:
        steps = delete_groups(self._connections, names_of("delete_groups", group_ids))
        return _done(_outcomes(steps), _errors_of_all, outcomes)

    def group_memory(self, group_id: str) -> Steps[GroupMemory | None]:
        check_group_id("group_memory", group_id)
        return _of_group(recall_group(self._connections, group_id), group_id)

    def group_offsets(
        self, group_ids: Iterable[str], places: Iterable[TopicPartition] | None
    ) -> Steps[dict[str, dict[TopicPartition, CommittedOffset] | ClientError]]:
        wanted = None if places is None else places_of("group_offsets", places)
        return fetch_offsets(self._connections, names_of("group_offsets", group_ids), wanted)

    def commit_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        outcomes: bool = False,
    ) -> Steps[PartitionErrors]:
        check_group_id("commit_group_offsets", group_id)
        wanted = committed_offsets_of("commit_group_offsets", offsets)
        steps = _of_group(commit_offsets(self._connections, group_id, wanted), group_id)
        return _done(steps, _errors_in, outcomes)

    def delete_group_offsets(
        self, group_id: str, places: Iterable[TopicPartition], *, outcomes: bool = False
    ) -> Steps[PartitionErrors]:
        check_group_id("delete_group_offsets", group_id)
        wanted = places_of("delete_group_offsets", places)
        steps = _of_group(delete_offsets(self._connections, group_id, wanted), group_id)
        return _done(steps, _errors_in, outcomes)

    # --- The cluster

    def describe_cluster(self) -> Steps[ClusterDescription]:
        return _result_of(DescribeCluster())

    def compare_calendars(self) -> Steps[list[ComparedCalendar]]:
        return compare_calendars()

    def elect_leaders(
        self,
        places: Iterable[TopicPartition] | None,
        *,
        unclean: bool = False,
        outcomes: bool = False,
    ) -> Steps[PartitionErrors]:
        wanted = None if places is None else places_of("elect_leaders", places)
        steps = _result_of(ElectLeaders(wanted, unclean=unclean))
        return _done(steps, _errors_of_elections, outcomes)

    def alter_partition_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, outcomes: bool = False
    ) -> Steps[PartitionErrors]:
        return _done(_result_of(AlterReassignments(targets_of(targets))), _errors_in, outcomes)

    def list_partition_reassignments(
        self, places: Iterable[TopicPartition] | None
    ) -> Steps[dict[TopicPartition, Reassignment]]:
        wanted = None if places is None else places_of("list_partition_reassignments", places)
        return _result_of(ListReassignments(wanted))

    def unregister_broker(self, broker_id: int) -> Steps[None]:
        check_number("unregister_broker: broker_id", broker_id, 0)
        return _result_of(UnregisterBroker(broker_id))

    def api_versions(self, broker_id: int | None) -> Steps[VersionTable]:
        check_broker_id("api_versions", broker_id)
        return _result_of(ApiVersions() if broker_id is None else ApiVersions(broker_id))

    def describe_features(self, broker_id: int | None) -> Steps[list[FeatureDescription]]:
        check_broker_id("describe_features", broker_id)
        return _result_of(DescribeFeatures() if broker_id is None else DescribeFeatures(broker_id))

    def update_features(
        self, levels: Mapping[str, int], *, may_downgrade: bool, validate_only: bool
    ) -> Steps[None]:
        wanted = feature_levels(levels)
        return _result_of(
            UpdateFeatures(wanted, may_downgrade=may_downgrade, validate_only=validate_only)
        )

    def describe_log_dirs(
        self, topics: Mapping[str, Sequence[int]] | None
    ) -> Steps[list[LogDirectory]]:
        wanted = None if topics is None else partitions_by_topic("describe_log_dirs", topics)
        return describe_log_dirs(self._connections, wanted)

    def describe_producers(self, places: Iterable[TopicPartition]) -> Steps[DescribedProducers]:
        return describe_producers(self._connections, places_of("describe_producers", places))

    def epoch_ends(
        self,
        epochs: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int] | None,
    ) -> Steps[FoundEpochs]:
        known = {} if leader_epochs is None else epochs_of("epoch_ends", leader_epochs)
        return epoch_ends(self._connections, epochs_of("epoch_ends", epochs), known)


def _name_of(broker_id: int | None) -> str:
    return "" if broker_id is None else str(broker_id)


def _result_of(call: Call[Any, A]) -> Steps[A]:
    """Make one call for its result."""
    yield [call]
    if call.error is not None:
        raise call.error
    return call.result


def _done(
    steps: Steps[A], errors_of: Callable[[A], Iterable[ClientError | None]], outcomes: bool
) -> Steps[A]:
    """Return the outcomes; raise the first error among them unless the user asked for
    `outcomes`."""
    answer = yield from steps
    if not outcomes:
        raise_first(errors_of(answer))
    return answer


def _errors_of_all(told: list[TopicOutcome] | list[GroupOutcome]) -> list[ClientError | None]:
    return [outcome.error for outcome in told]


def _errors_in(told: Mapping[TopicPartition, Any]) -> list[ClientError | None]:
    return [one if isinstance(one, ClientError) else None for one in told.values()]


def _errors_of_elections(told: PartitionErrors) -> list[ClientError | None]:
    # An election is not needed if the preferred replica leads already: that is a success.
    return [None if _is_needless(error) else error for error in told.values()]


def _is_needless(error: ClientError | None) -> bool:
    return isinstance(error, BrokerError) and error.code == ELECTION_NOT_NEEDED


def _result_or_error_of(call: Call[Any, A | ClientError]) -> Steps[A]:
    """Make one call and return its result; raise the result if it is an error."""
    result = yield from _result_of(call)
    if isinstance(result, ClientError):
        raise result
    return result


def _described(names: list[str]) -> Steps[list[Topic]]:
    topics = yield from _result_of(TopicList(names))
    told = [topic.name for topic in topics]
    for name in names:
        if name not in told:
            raise left_out(f"topic {name!r}")
    for topic in topics:
        if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopic(f"topic {topic.name!r} does not exist")
        if topic.error_code != NONE:
            raise BrokerError(topic.error_code, refusal_text(topic.name, topic.error_code))
    return topics


def _found(names: list[str]) -> Steps[dict[str, Topic]]:
    if not names:
        return {}
    topics = yield from _result_of(TopicList(names))
    return {topic.name: topic for topic in topics if topic.partitions}


def _outcomes(steps: Steps[dict[str, ClientError | None]]) -> Steps[list[GroupOutcome]]:
    outcomes = yield from steps
    return [GroupOutcome(*item) for item in outcomes.items()]


def _of_group(steps: Steps[dict[str, A | ClientError]], group_id: str) -> Steps[A]:
    """Return the answer for the one requested group; raise it if it is an error."""
    answers = yield from steps
    answer = answers[group_id]
    if isinstance(answer, ClientError):
        raise answer
    return answer
