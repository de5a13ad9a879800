"""A request of every API and version that the broker takes, with one of everything in it."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.absent_requests import absent_request

from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_configs import (
    AlterableConfig as ReplacedConfig,
    AlterConfigsRequest,
    AlterConfigsResource as ReplacedResource,
)
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.change_scheduled_records import (
    ChangedSchedulePartition,
    ChangedScheduleTopic,
    ChangeScheduledRecordsRequest,
    ScheduledChange,
)
from tarry.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tarry.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tarry.protocol.messages.describe_cluster import DescribeClusterRequest
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tarry.protocol.messages.describe_groups import DescribeGroupsRequest
from tarry.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest as ProducersTopic,
)
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tarry.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tarry.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.heartbeat import HeartbeatRequest
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig as AlteredConfig,
    AlterConfigsResource as AlteredResource,
    IncrementalAlterConfigsRequest,
)
from tarry.protocol.messages.init_producer_id import InitProducerIdRequest
from tarry.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tarry.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tarry.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tarry.protocol.messages.list_groups import ListGroupsRequest
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledPartition,
    ListScheduledRecordsRequest,
)
from tarry.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.protocol.messages.sync_group import SyncGroupRequest
from tarry.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tarry.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tarry.wire.reader import window_of

TOPIC_RESOURCE = 2


def produce_request(version: int, topic_id: bytes, batch: bytes) -> Message:
    data = [PartitionProduceData(index=0, records=window_of(batch))]
    topic = TopicProduceData(partition_data=data)
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.name = "orders"
    return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])


def fetch_request(version: int, topic_id: bytes) -> Message:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(partitions=[partition])
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.topic = "orders"
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[topic])
    if version <= 14:
        request.replica_id = -1
    return request


def request_of(key: int, version: int, topic_id: bytes, batch: bytes) -> Message:
    """A request of this version that has something to answer."""
    makers: dict[int, Callable[[], Message]] = {
        api_keys.PRODUCE: lambda: produce_request(version, topic_id, batch),
        api_keys.FETCH: lambda: fetch_request(version, topic_id),
        api_keys.LIST_OFFSETS: lambda: ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="orders",
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=0)],
                )
            ],
        ),
        api_keys.METADATA: lambda: MetadataRequest(
            topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True
        ),
        api_keys.API_VERSIONS: lambda: ApiVersionsRequest("kio", "1.0"),
        api_keys.CREATE_TOPICS: lambda: CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)],
            timeout_ms=1_000,
        ),
        api_keys.DELETE_TOPICS: lambda: (
            DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1_000)
            if version >= 6
            else DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1_000)
        ),
        api_keys.INIT_PRODUCER_ID: lambda: InitProducerIdRequest(transactional_id=None),
        api_keys.OFFSET_FOR_LEADER_EPOCH: lambda: OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic="orders",
                    partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)],
                )
            ]
        ),
        api_keys.DESCRIBE_CONFIGS: lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name="orders", configuration_keys=None
                )
            ]
        ),
        api_keys.ALTER_CONFIGS: lambda: AlterConfigsRequest(
            [ReplacedResource(TOPIC_RESOURCE, "orders", [ReplacedConfig("retention.ms", "5")])]
        ),
        api_keys.INCREMENTAL_ALTER_CONFIGS: lambda: IncrementalAlterConfigsRequest(
            [AlteredResource(TOPIC_RESOURCE, "orders", [AlteredConfig("retention.ms", 0, "5")])]
        ),
        api_keys.CREATE_PARTITIONS: lambda: CreatePartitionsRequest(
            [CreatePartitionsTopic("orders", 2, None)], 1_000
        ),
        api_keys.DELETE_RECORDS: lambda: DeleteRecordsRequest(
            [DeleteRecordsTopic("orders", [DeleteRecordsPartition(0, -1)])], 1_000
        ),
        api_keys.DESCRIBE_LOG_DIRS: lambda: DescribeLogDirsRequest(None),
        api_keys.DESCRIBE_PRODUCERS: lambda: DescribeProducersRequest(
            [ProducersTopic("orders", [0])]
        ),
        api_keys.LIST_CONFIG_RESOURCES: lambda: ListConfigResourcesRequest(
            [TOPIC_RESOURCE] if version >= 1 else []
        ),
        api_keys.DESCRIBE_CLUSTER: DescribeClusterRequest,
        api_keys.ELECT_LEADERS: lambda: ElectLeadersRequest(
            topic_partitions=[TopicPartitions("orders", [0])], timeout_ms=1_000
        ),
        api_keys.ALTER_PARTITION_REASSIGNMENTS: lambda: AlterPartitionReassignmentsRequest(
            timeout_ms=1_000,
            topics=[ReassignableTopic("orders", [ReassignablePartition(0, None)])],
        ),
        api_keys.LIST_PARTITION_REASSIGNMENTS: lambda: ListPartitionReassignmentsRequest(
            topics=[ListPartitionReassignmentsTopics("orders", [0])]
        ),
        api_keys.UNREGISTER_BROKER: lambda: UnregisterBrokerRequest(77),
        api_keys.UPDATE_FEATURES: lambda: UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey("tarry.group.configs", 1)]
        ),
        api_keys.DESCRIBE_TOPIC_PARTITIONS: lambda: DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="orders")], response_partition_limit=10
        ),
    }
    maker = makers.get(key)
    if maker is not None:
        return maker()
    return absent_request(key, version) or group_request(key, version, topic_id)


def group_request(key: int, version: int, topic_id: bytes) -> Message:
    """Of the APIs of groups: `g` has its coordinator and nobody in it."""
    makers: dict[int, Callable[[], Message]] = {
        api_keys.FIND_COORDINATOR: lambda: (
            FindCoordinatorRequest(coordinator_keys=["g"])
            if version >= 4
            else FindCoordinatorRequest(key="g")
        ),
        api_keys.JOIN_GROUP: lambda: JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
        ),
        api_keys.SYNC_GROUP: lambda: SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id="m",
            protocol_type="consumer" if version >= 5 else None,
            protocol_name="range" if version >= 5 else None,
        ),
        api_keys.HEARTBEAT: lambda: HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        api_keys.LEAVE_GROUP: lambda: (
            LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
            if version >= 3
            else LeaveGroupRequest(group_id="g", member_id="m")
        ),
        api_keys.OFFSET_COMMIT: lambda: offset_commit_request(version, topic_id),
        api_keys.OFFSET_FETCH: lambda: offset_fetch_request(version, topic_id),
        api_keys.DESCRIBE_GROUPS: lambda: DescribeGroupsRequest(groups=["g"]),
        api_keys.LIST_GROUPS: ListGroupsRequest,
        api_keys.CONSUMER_GROUP_HEARTBEAT: lambda: ConsumerGroupHeartbeatRequest("g", "m"),
        api_keys.CONSUMER_GROUP_DESCRIBE: lambda: ConsumerGroupDescribeRequest(["g"]),
        api_keys.DELETE_GROUPS: lambda: DeleteGroupsRequest(groups_names=["g"]),
        api_keys.OFFSET_DELETE: lambda: OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
        api_keys.LIST_SCHEDULED_RECORDS: lambda: ListScheduledRecordsRequest(
            "orders", partitions=[ListScheduledPartition(0)]
        ),
        api_keys.CHANGE_SCHEDULED_RECORDS: lambda: ChangeScheduledRecordsRequest(
            topics=[
                ChangedScheduleTopic(
                    "orders", [ChangedSchedulePartition(0, [ScheduledChange(b"a")])]
                )
            ]
        ),
    }
    return makers[key]()


def offset_commit_request(version: int, topic_id: bytes) -> Message:
    partition = OffsetCommitRequestPartition(0, 1, committed_metadata="x")
    topic = OffsetCommitRequestTopic(partitions=[partition])
    if version >= 10:
        topic.topic_id = topic_id
    else:
        topic.name = "orders"
    return OffsetCommitRequest(group_id="g", topics=[topic])


def offset_fetch_request(version: int, topic_id: bytes) -> Message:
    if version >= 8:
        topics = OffsetFetchRequestTopics(partition_indexes=[0])
        if version >= 10:
            topics.topic_id = topic_id
        else:
            topics.name = "orders"
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topics])])
    topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
    return OffsetFetchRequest(group_id="g", topics=[topic])
