"""Classes and decoders of every API by its key, for whoever meets any of them.

Imports all messages; who needs one API imports its module.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    decode_alter_client_quotas_request,
    decode_alter_client_quotas_response,
)
from tarry.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    decode_alter_configs_request,
    decode_alter_configs_response,
)
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    decode_alter_partition_reassignments_request,
    decode_alter_partition_reassignments_response,
)
from tarry.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    decode_alter_user_scram_credentials_request,
    decode_alter_user_scram_credentials_response,
)
from tarry.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    decode_api_versions_request,
    decode_api_versions_response,
)
from tarry.protocol.messages.change_scheduled_records import (
    ChangeScheduledRecordsRequest,
    ChangeScheduledRecordsResponse,
    decode_change_scheduled_records_request,
    decode_change_scheduled_records_response,
)
from tarry.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    decode_consumer_group_describe_request,
    decode_consumer_group_describe_response,
)
from tarry.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    decode_consumer_group_heartbeat_request,
    decode_consumer_group_heartbeat_response,
)
from tarry.protocol.messages.create_acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    decode_create_acls_request,
    decode_create_acls_response,
)
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    decode_create_partitions_request,
    decode_create_partitions_response,
)
from tarry.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    decode_create_topics_request,
    decode_create_topics_response,
)
from tarry.protocol.messages.delete_acls import (
    DeleteAclsRequest,
    DeleteAclsResponse,
    decode_delete_acls_request,
    decode_delete_acls_response,
)
from tarry.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    decode_delete_groups_request,
    decode_delete_groups_response,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    decode_delete_records_request,
    decode_delete_records_response,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    decode_delete_topics_request,
    decode_delete_topics_response,
)
from tarry.protocol.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    decode_describe_acls_request,
    decode_describe_acls_response,
)
from tarry.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    decode_describe_client_quotas_request,
    decode_describe_client_quotas_response,
)
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    decode_describe_cluster_request,
    decode_describe_cluster_response,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    decode_describe_configs_request,
    decode_describe_configs_response,
)
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    decode_describe_groups_request,
    decode_describe_groups_response,
)
from tarry.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    decode_describe_log_dirs_request,
    decode_describe_log_dirs_response,
)
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    decode_describe_producers_request,
    decode_describe_producers_response,
)
from tarry.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    decode_describe_quorum_request,
    decode_describe_quorum_response,
)
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    decode_describe_topic_partitions_request,
    decode_describe_topic_partitions_response,
)
from tarry.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    decode_describe_user_scram_credentials_request,
    decode_describe_user_scram_credentials_response,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    decode_elect_leaders_request,
    decode_elect_leaders_response,
)
from tarry.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    decode_fetch_request,
    decode_fetch_response,
)
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    decode_find_coordinator_request,
    decode_find_coordinator_response,
)
from tarry.protocol.messages.heartbeat import (
    HeartbeatRequest,
    HeartbeatResponse,
    decode_heartbeat_request,
    decode_heartbeat_response,
)
from tarry.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    decode_incremental_alter_configs_request,
    decode_incremental_alter_configs_response,
)
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    decode_init_producer_id_request,
    decode_init_producer_id_response,
)
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    decode_join_group_request,
    decode_join_group_response,
)
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    decode_leave_group_request,
    decode_leave_group_response,
)
from tarry.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    decode_list_config_resources_request,
    decode_list_config_resources_response,
)
from tarry.protocol.messages.list_groups import (
    ListGroupsRequest,
    ListGroupsResponse,
    decode_list_groups_request,
    decode_list_groups_response,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    decode_list_offsets_request,
    decode_list_offsets_response,
)
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    decode_list_partition_reassignments_request,
    decode_list_partition_reassignments_response,
)
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
    decode_list_scheduled_records_request,
    decode_list_scheduled_records_response,
)
from tarry.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    decode_list_transactions_request,
    decode_list_transactions_response,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    decode_metadata_request,
    decode_metadata_response,
)
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    decode_offset_commit_request,
    decode_offset_commit_response,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    decode_offset_delete_request,
    decode_offset_delete_response,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    decode_offset_fetch_request,
    decode_offset_fetch_response,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    decode_offset_for_leader_epoch_request,
    decode_offset_for_leader_epoch_response,
)
from tarry.protocol.messages.produce import (
    ProduceRequest,
    ProduceResponse,
    decode_produce_request,
    decode_produce_response,
)
from tarry.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    decode_share_group_heartbeat_request,
    decode_share_group_heartbeat_response,
)
from tarry.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupResponse,
    decode_sync_group_request,
    decode_sync_group_response,
)
from tarry.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    decode_unregister_broker_request,
    decode_unregister_broker_response,
)
from tarry.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    decode_update_features_request,
    decode_update_features_response,
)
from tarry.wire.reader import Reader


class Messages(NamedTuple):
    """Request and response of one API."""

    request_type: type[Message]
    decode_request: Callable[[Reader, int], Message]
    response_type: type[Message]
    decode_response: Callable[[Reader, int], Message]


MESSAGES: Final[dict[int, Messages]] = {
    api_keys.PRODUCE: Messages(
        ProduceRequest, decode_produce_request, ProduceResponse, decode_produce_response
    ),
    api_keys.FETCH: Messages(
        FetchRequest, decode_fetch_request, FetchResponse, decode_fetch_response
    ),
    api_keys.LIST_OFFSETS: Messages(
        ListOffsetsRequest,
        decode_list_offsets_request,
        ListOffsetsResponse,
        decode_list_offsets_response,
    ),
    api_keys.METADATA: Messages(
        MetadataRequest, decode_metadata_request, MetadataResponse, decode_metadata_response
    ),
    api_keys.OFFSET_COMMIT: Messages(
        OffsetCommitRequest,
        decode_offset_commit_request,
        OffsetCommitResponse,
        decode_offset_commit_response,
    ),
    api_keys.OFFSET_FETCH: Messages(
        OffsetFetchRequest,
        decode_offset_fetch_request,
        OffsetFetchResponse,
        decode_offset_fetch_response,
    ),
    api_keys.FIND_COORDINATOR: Messages(
        FindCoordinatorRequest,
        decode_find_coordinator_request,
        FindCoordinatorResponse,
        decode_find_coordinator_response,
    ),
    api_keys.JOIN_GROUP: Messages(
        JoinGroupRequest, decode_join_group_request, JoinGroupResponse, decode_join_group_response
    ),
    api_keys.HEARTBEAT: Messages(
        HeartbeatRequest, decode_heartbeat_request, HeartbeatResponse, decode_heartbeat_response
    ),
    api_keys.LEAVE_GROUP: Messages(
        LeaveGroupRequest,
        decode_leave_group_request,
        LeaveGroupResponse,
        decode_leave_group_response,
    ),
    api_keys.SYNC_GROUP: Messages(
        SyncGroupRequest, decode_sync_group_request, SyncGroupResponse, decode_sync_group_response
    ),
    api_keys.DESCRIBE_GROUPS: Messages(
        DescribeGroupsRequest,
        decode_describe_groups_request,
        DescribeGroupsResponse,
        decode_describe_groups_response,
    ),
    api_keys.LIST_GROUPS: Messages(
        ListGroupsRequest,
        decode_list_groups_request,
        ListGroupsResponse,
        decode_list_groups_response,
    ),
    api_keys.API_VERSIONS: Messages(
        ApiVersionsRequest,
        decode_api_versions_request,
        ApiVersionsResponse,
        decode_api_versions_response,
    ),
    api_keys.CREATE_TOPICS: Messages(
        CreateTopicsRequest,
        decode_create_topics_request,
        CreateTopicsResponse,
        decode_create_topics_response,
    ),
    api_keys.DELETE_TOPICS: Messages(
        DeleteTopicsRequest,
        decode_delete_topics_request,
        DeleteTopicsResponse,
        decode_delete_topics_response,
    ),
    api_keys.DELETE_RECORDS: Messages(
        DeleteRecordsRequest,
        decode_delete_records_request,
        DeleteRecordsResponse,
        decode_delete_records_response,
    ),
    api_keys.INIT_PRODUCER_ID: Messages(
        InitProducerIdRequest,
        decode_init_producer_id_request,
        InitProducerIdResponse,
        decode_init_producer_id_response,
    ),
    api_keys.OFFSET_FOR_LEADER_EPOCH: Messages(
        OffsetForLeaderEpochRequest,
        decode_offset_for_leader_epoch_request,
        OffsetForLeaderEpochResponse,
        decode_offset_for_leader_epoch_response,
    ),
    api_keys.DESCRIBE_ACLS: Messages(
        DescribeAclsRequest,
        decode_describe_acls_request,
        DescribeAclsResponse,
        decode_describe_acls_response,
    ),
    api_keys.CREATE_ACLS: Messages(
        CreateAclsRequest,
        decode_create_acls_request,
        CreateAclsResponse,
        decode_create_acls_response,
    ),
    api_keys.DELETE_ACLS: Messages(
        DeleteAclsRequest,
        decode_delete_acls_request,
        DeleteAclsResponse,
        decode_delete_acls_response,
    ),
    api_keys.DESCRIBE_CONFIGS: Messages(
        DescribeConfigsRequest,
        decode_describe_configs_request,
        DescribeConfigsResponse,
        decode_describe_configs_response,
    ),
    api_keys.ALTER_CONFIGS: Messages(
        AlterConfigsRequest,
        decode_alter_configs_request,
        AlterConfigsResponse,
        decode_alter_configs_response,
    ),
    api_keys.DESCRIBE_LOG_DIRS: Messages(
        DescribeLogDirsRequest,
        decode_describe_log_dirs_request,
        DescribeLogDirsResponse,
        decode_describe_log_dirs_response,
    ),
    api_keys.CREATE_PARTITIONS: Messages(
        CreatePartitionsRequest,
        decode_create_partitions_request,
        CreatePartitionsResponse,
        decode_create_partitions_response,
    ),
    api_keys.DELETE_GROUPS: Messages(
        DeleteGroupsRequest,
        decode_delete_groups_request,
        DeleteGroupsResponse,
        decode_delete_groups_response,
    ),
    api_keys.ELECT_LEADERS: Messages(
        ElectLeadersRequest,
        decode_elect_leaders_request,
        ElectLeadersResponse,
        decode_elect_leaders_response,
    ),
    api_keys.INCREMENTAL_ALTER_CONFIGS: Messages(
        IncrementalAlterConfigsRequest,
        decode_incremental_alter_configs_request,
        IncrementalAlterConfigsResponse,
        decode_incremental_alter_configs_response,
    ),
    api_keys.ALTER_PARTITION_REASSIGNMENTS: Messages(
        AlterPartitionReassignmentsRequest,
        decode_alter_partition_reassignments_request,
        AlterPartitionReassignmentsResponse,
        decode_alter_partition_reassignments_response,
    ),
    api_keys.LIST_PARTITION_REASSIGNMENTS: Messages(
        ListPartitionReassignmentsRequest,
        decode_list_partition_reassignments_request,
        ListPartitionReassignmentsResponse,
        decode_list_partition_reassignments_response,
    ),
    api_keys.OFFSET_DELETE: Messages(
        OffsetDeleteRequest,
        decode_offset_delete_request,
        OffsetDeleteResponse,
        decode_offset_delete_response,
    ),
    api_keys.DESCRIBE_CLIENT_QUOTAS: Messages(
        DescribeClientQuotasRequest,
        decode_describe_client_quotas_request,
        DescribeClientQuotasResponse,
        decode_describe_client_quotas_response,
    ),
    api_keys.ALTER_CLIENT_QUOTAS: Messages(
        AlterClientQuotasRequest,
        decode_alter_client_quotas_request,
        AlterClientQuotasResponse,
        decode_alter_client_quotas_response,
    ),
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: Messages(
        DescribeUserScramCredentialsRequest,
        decode_describe_user_scram_credentials_request,
        DescribeUserScramCredentialsResponse,
        decode_describe_user_scram_credentials_response,
    ),
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: Messages(
        AlterUserScramCredentialsRequest,
        decode_alter_user_scram_credentials_request,
        AlterUserScramCredentialsResponse,
        decode_alter_user_scram_credentials_response,
    ),
    api_keys.DESCRIBE_QUORUM: Messages(
        DescribeQuorumRequest,
        decode_describe_quorum_request,
        DescribeQuorumResponse,
        decode_describe_quorum_response,
    ),
    api_keys.UPDATE_FEATURES: Messages(
        UpdateFeaturesRequest,
        decode_update_features_request,
        UpdateFeaturesResponse,
        decode_update_features_response,
    ),
    api_keys.DESCRIBE_CLUSTER: Messages(
        DescribeClusterRequest,
        decode_describe_cluster_request,
        DescribeClusterResponse,
        decode_describe_cluster_response,
    ),
    api_keys.DESCRIBE_PRODUCERS: Messages(
        DescribeProducersRequest,
        decode_describe_producers_request,
        DescribeProducersResponse,
        decode_describe_producers_response,
    ),
    api_keys.UNREGISTER_BROKER: Messages(
        UnregisterBrokerRequest,
        decode_unregister_broker_request,
        UnregisterBrokerResponse,
        decode_unregister_broker_response,
    ),
    api_keys.LIST_TRANSACTIONS: Messages(
        ListTransactionsRequest,
        decode_list_transactions_request,
        ListTransactionsResponse,
        decode_list_transactions_response,
    ),
    api_keys.CONSUMER_GROUP_HEARTBEAT: Messages(
        ConsumerGroupHeartbeatRequest,
        decode_consumer_group_heartbeat_request,
        ConsumerGroupHeartbeatResponse,
        decode_consumer_group_heartbeat_response,
    ),
    api_keys.CONSUMER_GROUP_DESCRIBE: Messages(
        ConsumerGroupDescribeRequest,
        decode_consumer_group_describe_request,
        ConsumerGroupDescribeResponse,
        decode_consumer_group_describe_response,
    ),
    api_keys.LIST_CONFIG_RESOURCES: Messages(
        ListConfigResourcesRequest,
        decode_list_config_resources_request,
        ListConfigResourcesResponse,
        decode_list_config_resources_response,
    ),
    api_keys.DESCRIBE_TOPIC_PARTITIONS: Messages(
        DescribeTopicPartitionsRequest,
        decode_describe_topic_partitions_request,
        DescribeTopicPartitionsResponse,
        decode_describe_topic_partitions_response,
    ),
    api_keys.SHARE_GROUP_HEARTBEAT: Messages(
        ShareGroupHeartbeatRequest,
        decode_share_group_heartbeat_request,
        ShareGroupHeartbeatResponse,
        decode_share_group_heartbeat_response,
    ),
    api_keys.LIST_SCHEDULED_RECORDS: Messages(
        ListScheduledRecordsRequest,
        decode_list_scheduled_records_request,
        ListScheduledRecordsResponse,
        decode_list_scheduled_records_response,
    ),
    api_keys.CHANGE_SCHEDULED_RECORDS: Messages(
        ChangeScheduledRecordsRequest,
        decode_change_scheduled_records_request,
        ChangeScheduledRecordsResponse,
        decode_change_scheduled_records_response,
    ),
}
