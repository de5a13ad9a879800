"""Groups, settings and deletions on the brokers of a scripted cluster, for admin clients.

A group has one coordinator; every other broker answers NOT_COORDINATOR.  `tarry_notes` makes the
brokers remember rebalances, which Apache Kafka's do not.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.client.scripted_cluster import ScriptedCluster, Seen

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import encode_assignment
from tarry.protocol import api_keys
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from tarry.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from tarry.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tarry.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tarry.protocol.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from tarry.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tarry.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tarry.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

TOPIC = 2
BROKER = 4
GROUP = 32


class Group:
    """Group in the form that its coordinator keeps."""

    def __init__(self, coordinator_id: int) -> None:
        self.coordinator_id = coordinator_id
        self.state = "Empty"
        self.group_type = "classic"
        self.protocol_type = "consumer"
        self.protocol = "range"
        self.members: list[DescribedGroupMember] = []
        self.offsets: dict[TopicPartition, int] = {}

    def join(
        self, member_id: str, *places: TopicPartition, instance_id: str | None = None
    ) -> DescribedGroupMember:
        """Join a member that has these partitions."""
        member = DescribedGroupMember(
            member_id, instance_id, "app", "/10.1.1.1", b"", encode_assignment(places)
        )
        self.members.append(member)
        self.state = "Stable"
        return member


class GroupCluster(ScriptedCluster):
    """Brokers that also serve admin clients."""

    def __init__(self, brokers: int = 1) -> None:
        super().__init__(brokers)
        self.groups: dict[str, Group] = {}
        self.tarry_notes: dict[str, list[dict[str, Any]]] | None = None
        # By resource type and name: key and value of what was set.
        self.settings: dict[tuple[int, str], dict[str, str]] = {}
        # The brokers' answers about their disks.
        self.disk_error = errors.NONE
        self.free_bytes = 5 * 10**8
        # The settings that topics were made with.
        self.created: dict[str, dict[str, str]] = {}

    def group(self, name: str, coordinator_id: int = 1) -> Group:
        return self.groups.setdefault(name, Group(coordinator_id))

    def default(self, seen: Seen) -> Any:
        handler = {
            api_keys.FIND_COORDINATOR: self._find_coordinator,
            api_keys.LIST_GROUPS: self._list_groups,
            api_keys.DESCRIBE_GROUPS: self._describe_groups,
            api_keys.DELETE_GROUPS: self._delete_groups,
            api_keys.OFFSET_FETCH: self._offset_fetch,
            api_keys.OFFSET_COMMIT: self._offset_commit,
            api_keys.OFFSET_DELETE: self._offset_delete,
            api_keys.DESCRIBE_CONFIGS: self._describe_configs,
            api_keys.INCREMENTAL_ALTER_CONFIGS: self._alter_configs,
            api_keys.CREATE_TOPICS: self._create_topics,
            api_keys.DELETE_TOPICS: self._delete_topics,
            api_keys.CREATE_PARTITIONS: self._create_partitions,
            api_keys.DELETE_RECORDS: self._delete_records,
            api_keys.DESCRIBE_CLUSTER: self._describe_cluster,
            api_keys.DESCRIBE_LOG_DIRS: self._describe_log_dirs,
            api_keys.DESCRIBE_PRODUCERS: self._describe_producers,
        }.get(seen.api_key)
        return super().default(seen) if handler is None else handler(seen)

    # --- Groups

    def _coordinator_of(self, name: str) -> int:
        known = self.groups.get(name)
        return known.coordinator_id if known is not None else 1

    def _find_coordinator(self, seen: Seen) -> FindCoordinatorResponse:
        keys = seen.request.coordinator_keys if seen.version >= 4 else [seen.request.key]
        found = []
        for key in keys:
            broker_id = self._coordinator_of(key)
            address = self.brokers[broker_id]
            found.append(Coordinator(key, broker_id, address.host, address.port))
        if seen.version >= 4:
            return FindCoordinatorResponse(coordinators=found)
        one = found[0]
        return FindCoordinatorResponse(node_id=one.node_id, host=one.host, port=one.port)

    def _is_elsewhere(self, seen: Seen, name: str) -> bool:
        return self._coordinator_of(name) != seen.broker_id

    def _list_groups(self, seen: Seen) -> ListGroupsResponse:
        wanted = seen.request.states_filter
        return ListGroupsResponse(
            groups=[
                ListedGroup(name, one.protocol_type, *self._state_fields(one, seen.version))
                for name, one in self.groups.items()
                if one.coordinator_id == seen.broker_id and (not wanted or one.state in wanted)
            ]
        )

    def _state_fields(self, one: Group, version: int) -> list[str]:
        return [one.state, one.group_type] if version >= 5 else [one.state] if version == 4 else []

    def _describe_groups(self, seen: Seen) -> DescribeGroupsResponse:
        answer = DescribeGroupsResponse()
        for name in seen.request.groups:
            one = self.groups.get(name)
            described = DescribedGroup(group_id=name)
            if self._is_elsewhere(seen, name):
                described.error_code = errors.NOT_COORDINATOR
            elif one is None and seen.version >= 6:
                described.error_code = errors.GROUP_ID_NOT_FOUND
                described.error_message = f"Group {name} not found."
            elif one is None:
                described.group_state = "Dead"
            else:
                described.group_state = one.state
                described.protocol_type = one.protocol_type
                described.protocol_data = one.protocol if one.members else ""
                described.members = list(one.members)
            answer.groups.append(described)
        return answer

    def _delete_groups(self, seen: Seen) -> DeleteGroupsResponse:
        answer = DeleteGroupsResponse()
        for name in seen.request.groups_names:
            one = self.groups.get(name)
            code = errors.NONE
            if self._is_elsewhere(seen, name):
                code = errors.NOT_COORDINATOR
            elif one is None:
                code = errors.GROUP_ID_NOT_FOUND
            elif one.members:
                code = errors.NON_EMPTY_GROUP
            else:
                del self.groups[name]
            answer.results.append(DeletableGroupResult(name, code))
        return answer

    # --- Offsets

    def _offset_fetch(self, seen: Seen) -> OffsetFetchResponse:
        is_new = seen.version >= 8
        asked = seen.request.groups[0] if is_new else seen.request
        code = errors.NOT_COORDINATOR if self._is_elsewhere(seen, asked.group_id) else errors.NONE
        known = self.groups.get(asked.group_id)
        offsets = {} if known is None or code else known.offsets
        if asked.topics is not None:
            wanted = {(one.name, index) for one in asked.topics for index in one.partition_indexes}
            offsets = {place: offsets.get(place, -1) for place in sorted(wanted)}
        rows = list(offsets.items())
        if is_new:
            group = OffsetFetchResponseGroup(asked.group_id, error_code=code)
            group.topics = [
                OffsetFetchResponseTopics(
                    topic,
                    partitions=[OffsetFetchResponsePartitions(index, offset, metadata="")],
                )
                for (topic, index), offset in rows
            ]
            return OffsetFetchResponse(groups=[group])
        topics = [
            OffsetFetchResponseTopic(
                topic, [OffsetFetchResponsePartition(index, offset, metadata="")]
            )
            for (topic, index), offset in rows
        ]
        return OffsetFetchResponse(topics=topics, error_code=code)

    def _has_partition(self, topic: str, index: int) -> bool:
        return topic in self.topics and index < len(self.topics[topic].logs)

    def _offset_commit(self, seen: Seen) -> OffsetCommitResponse:
        request = seen.request
        answer = OffsetCommitResponse()
        is_elsewhere = self._is_elsewhere(seen, request.group_id)
        group = self.group(request.group_id)
        for topic in request.topics:
            rows = []
            for one in topic.partitions:
                code = errors.NONE
                if is_elsewhere:
                    code = errors.NOT_COORDINATOR
                elif group.members:
                    code = errors.UNKNOWN_MEMBER_ID
                elif not self._has_partition(topic.name, one.partition_index):
                    code = errors.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    group.offsets[topic.name, one.partition_index] = one.committed_offset
                rows.append(OffsetCommitResponsePartition(one.partition_index, code))
            answer.topics.append(OffsetCommitResponseTopic(topic.name, partitions=rows))
        return answer

    def _offset_delete(self, seen: Seen) -> OffsetDeleteResponse:
        request = seen.request
        answer = OffsetDeleteResponse()
        group = self.groups.get(request.group_id)
        if self._is_elsewhere(seen, request.group_id):
            answer.error_code = errors.NOT_COORDINATOR
        elif group is None:
            answer.error_code = errors.GROUP_ID_NOT_FOUND
        else:
            for topic in request.topics:
                code = errors.GROUP_SUBSCRIBED_TO_TOPIC if group.members else errors.NONE
                rows = [
                    OffsetDeleteResponsePartition(one.partition_index, code)
                    for one in topic.partitions
                ]
                for one in topic.partitions:
                    if not code:
                        group.offsets.pop((topic.name, one.partition_index), None)
                answer.topics.append(OffsetDeleteResponseTopic(topic.name, rows))
        return answer

    # --- Settings

    def _describe_configs(self, seen: Seen) -> DescribeConfigsResponse:
        resource = seen.request.resources[0]
        kind, name = resource.resource_type, resource.resource_name
        result = DescribeConfigsResult(resource_type=kind, resource_name=name)
        if kind == GROUP:
            self._recall(seen, name, result)
        elif kind == TOPIC and name not in self.topics:
            result.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
            result.error_message = ""
        else:
            result.configs = [
                self._config(seen, key, value) for key, value in self._values(kind, name).items()
            ]
        return DescribeConfigsResponse(results=[result])

    def _values(self, kind: int, name: str) -> dict[str, tuple[str, int]]:
        """Return the settings with their values and sources: two defaults, and what was set."""
        values = {"cleanup.policy": ("delete", 5), "retention.ms": ("604800000", 5)}
        source = 1 if kind == TOPIC else 2 if name else 3
        for key, value in self.settings.get((kind, name), {}).items():
            values[key] = (value, source)
        return values

    def _config(self, seen: Seen, key: str, value: TopicPartition) -> DescribeConfigsResourceResult:
        answer = DescribeConfigsResourceResult(key, value[0], config_source=value[1])
        if seen.version >= 3:
            answer.config_type = 7 if key == "cleanup.policy" else 5
            if seen.request.include_documentation:
                answer.documentation = f"What <b>{key}</b> does."
        if seen.request.include_synonyms:
            answer.synonyms = [DescribeConfigsSynonym(key, value[0], value[1])]
        return answer

    def _recall(self, seen: Seen, name: str, result: DescribeConfigsResult) -> None:
        if self._is_elsewhere(seen, name):
            result.error_code = errors.NOT_COORDINATOR
        elif self.tarry_notes is None:
            result.configs = [DescribeConfigsResourceResult("consumer.session.timeout.ms", "45000")]
        elif name not in self.tarry_notes:
            code = str(errors.GROUP_ID_NOT_FOUND)
            result.configs = [DescribeConfigsResourceResult("tarry.notes.error.code", code)]
        else:
            told = {"tarry.notes.since.ms": "1700000000000"}
            for number, note in enumerate(self.tarry_notes[name], 1):
                told[f"tarry.note.{number:06}"] = json.dumps(note)
            result.configs = [
                DescribeConfigsResourceResult(key, value, read_only=True)
                for key, value in told.items()
            ]

    def _alter_configs(self, seen: Seen) -> IncrementalAlterConfigsResponse:
        resource = seen.request.resources[0]
        kind, name = resource.resource_type, resource.resource_name
        answer = AlterConfigsResourceResponse(0, None, kind, name)
        known = self._values(kind, name)
        strangers = [one.name for one in resource.configs if one.name not in known]
        if kind == TOPIC and name not in self.topics:
            answer.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
            answer.error_message = ""
        elif strangers:
            answer.error_code = errors.INVALID_CONFIG
            answer.error_message = f"Unknown topic config name: {strangers[0]}"
        elif not seen.request.validate_only:
            settings = self.settings.setdefault((kind, name), {})
            for one in resource.configs:
                old = known[one.name][0]
                if one.config_operation == 1:
                    settings.pop(one.name, None)
                elif one.config_operation == 2:
                    settings[one.name] = f"{old},{one.value}"
                elif one.config_operation == 3:
                    kept = [part for part in old.split(",") if part != one.value]
                    settings[one.name] = ",".join(kept)
                else:
                    settings[one.name] = one.value
        return IncrementalAlterConfigsResponse(responses=[answer])

    # --- Topics

    def _describe_log_dirs(self, seen: Seen) -> DescribeLogDirsResponse:
        """Describe log directories: a record counts 100 bytes; the disk has 1 GB, and `free_bytes`
        of it left."""
        result = DescribeLogDirsResult(self.disk_error, "/data")
        if seen.version >= 4:
            result.total_bytes, result.usable_bytes = 10**9, self.free_bytes
        asked = seen.request.topics
        names = sorted(self.topics) if asked is None else [one.topic for one in asked]
        for name in names if self.disk_error == errors.NONE else ():
            logs = self.topics[name].logs
            mine = [
                DescribeLogDirsPartition(index, 100 * (log.end_offset - log.start_offset))
                for index, log in enumerate(logs)
                if log.leader_id == seen.broker_id
            ]
            result.topics.append(DescribeLogDirsTopic(name, mine))
        return DescribeLogDirsResponse(results=[result])

    def _create_topics(self, seen: Seen) -> CreateTopicsResponse:
        answer = CreateTopicsResponse()
        for wanted in seen.request.topics:
            row = CreatableTopicResult(wanted.name, num_partitions=1, replication_factor=1)
            if wanted.name in self.topics:
                row = CreatableTopicResult(
                    wanted.name, error_code=errors.TOPIC_ALREADY_EXISTS, error_message="there"
                )
            elif not seen.request.validate_only:
                self.topic(wanted.name)
                self.created[wanted.name] = {one.name: one.value for one in wanted.configs}
            answer.topics.append(row)
        return answer

    def _delete_topics(self, seen: Seen) -> DeleteTopicsResponse:
        answer = DeleteTopicsResponse()
        for wanted in seen.request.topics:
            known = self.topics.pop(wanted.name, None)
            code = errors.NONE if known is not None else errors.UNKNOWN_TOPIC_OR_PARTITION
            answer.responses.append(DeletableTopicResult(wanted.name, error_code=code))
        return answer

    def _create_partitions(self, seen: Seen) -> CreatePartitionsResponse:
        answer = CreatePartitionsResponse()
        for wanted in seen.request.topics:
            row = CreatePartitionsTopicResult(wanted.name)
            known = self.topics.get(wanted.name)
            if known is None:
                row.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
            elif wanted.count <= len(known.logs):
                row.error_code = errors.INVALID_PARTITIONS
                row.error_message = f"Topic already has {len(known.logs)} partition(s)."
            elif not seen.request.validate_only:
                first = known.logs[0]
                known.logs.extend(
                    type(first)(first.leader_id) for _ in range(wanted.count - len(known.logs))
                )
            answer.results.append(row)
        return answer

    def _delete_records(self, seen: Seen) -> DeleteRecordsResponse:
        answer = DeleteRecordsResponse()
        for topic in seen.request.topics:
            rows = []
            for one in topic.partitions:
                log = self.topics[topic.name].logs[one.partition_index]
                row = DeleteRecordsPartitionResult(one.partition_index, -1)
                offset = log.end_offset if one.offset == -1 else one.offset
                if log.leader_id != seen.broker_id:
                    row.error_code = errors.NOT_LEADER_OR_FOLLOWER
                elif not 0 <= offset <= log.end_offset:
                    row.error_code = errors.OFFSET_OUT_OF_RANGE
                else:
                    log.start_offset = max(log.start_offset, offset)
                    row.low_watermark = log.start_offset
                rows.append(row)
            answer.topics.append(DeleteRecordsTopicResult(topic.name, rows))
        return answer

    def _describe_producers(self, seen: Seen) -> DescribeProducersResponse:
        """Describe producer 7 in partitions with records; its sequences are their offsets."""
        answer = DescribeProducersResponse()
        for topic in seen.request.topics:
            rows = []
            for index in topic.partition_indexes:
                log = self.topics[topic.name].logs[index]
                row = PartitionResponse(index)
                if log.leader_id != seen.broker_id:
                    row.error_code = errors.NOT_LEADER_OR_FOLLOWER
                elif log.end_offset > 0:
                    row.active_producers.append(ProducerState(7, 0, log.end_offset - 1, 1000, -1))
                rows.append(row)
            answer.topics.append(TopicResponse(topic.name, rows))
        return answer

    def _describe_cluster(self, seen: Seen) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            cluster_id="scripted",
            controller_id=1,
            brokers=[
                DescribeClusterBroker(broker_id, address.host, address.port)
                for broker_id, address in self.brokers.items()
            ],
        )
