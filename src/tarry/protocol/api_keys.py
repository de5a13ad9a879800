"""API keys, and for each the versions that our schema describes.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from typing import Final

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
DESCRIBE_ACLS: Final = 29
CREATE_ACLS: Final = 30
DELETE_ACLS: Final = 31
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
DESCRIBE_LOG_DIRS: Final = 35
CREATE_PARTITIONS: Final = 37
DELETE_GROUPS: Final = 42
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
OFFSET_DELETE: Final = 47
DESCRIBE_CLIENT_QUOTAS: Final = 48
ALTER_CLIENT_QUOTAS: Final = 49
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = 50
ALTER_USER_SCRAM_CREDENTIALS: Final = 51
DESCRIBE_QUORUM: Final = 55
UPDATE_FEATURES: Final = 57
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_PRODUCERS: Final = 61
UNREGISTER_BROKER: Final = 64
LIST_TRANSACTIONS: Final = 66
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69
LIST_CONFIG_RESOURCES: Final = 74
DESCRIBE_TOPIC_PARTITIONS: Final = 75
SHARE_GROUP_HEARTBEAT: Final = 76
LIST_SCHEDULED_RECORDS: Final = 10000
CHANGE_SCHEDULED_RECORDS: Final = 10001


class Api:
    """Key of an API; `flexible_from` is -1 if no version is flexible."""

    def __init__(
        self,
        key: int,
        name: str,
        version_min: int,
        version_max: int,
        flexible_from: int,
    ) -> None:
        self.key = key
        self.name = name
        self.version_min = version_min
        self.version_max = version_max
        self.flexible_from = flexible_from

    def is_flexible(self, version: int) -> bool:
        return 0 <= self.flexible_from <= version


APIS: Final[dict[int, Api]] = {
    PRODUCE: Api(0, "Produce", 3, 13, 9),
    FETCH: Api(1, "Fetch", 4, 18, 12),
    LIST_OFFSETS: Api(2, "ListOffsets", 1, 11, 6),
    METADATA: Api(3, "Metadata", 0, 13, 9),
    OFFSET_COMMIT: Api(8, "OffsetCommit", 2, 10, 8),
    OFFSET_FETCH: Api(9, "OffsetFetch", 1, 10, 6),
    FIND_COORDINATOR: Api(10, "FindCoordinator", 0, 6, 3),
    JOIN_GROUP: Api(11, "JoinGroup", 0, 9, 6),
    HEARTBEAT: Api(12, "Heartbeat", 0, 4, 4),
    LEAVE_GROUP: Api(13, "LeaveGroup", 0, 5, 4),
    SYNC_GROUP: Api(14, "SyncGroup", 0, 5, 4),
    DESCRIBE_GROUPS: Api(15, "DescribeGroups", 0, 6, 5),
    LIST_GROUPS: Api(16, "ListGroups", 0, 5, 3),
    API_VERSIONS: Api(18, "ApiVersions", 0, 5, 3),
    CREATE_TOPICS: Api(19, "CreateTopics", 2, 7, 5),
    DELETE_TOPICS: Api(20, "DeleteTopics", 1, 6, 4),
    DELETE_RECORDS: Api(21, "DeleteRecords", 0, 2, 2),
    INIT_PRODUCER_ID: Api(22, "InitProducerId", 0, 5, 2),
    OFFSET_FOR_LEADER_EPOCH: Api(23, "OffsetForLeaderEpoch", 2, 4, 4),
    DESCRIBE_ACLS: Api(29, "DescribeAcls", 1, 3, 2),
    CREATE_ACLS: Api(30, "CreateAcls", 1, 3, 2),
    DELETE_ACLS: Api(31, "DeleteAcls", 1, 3, 2),
    DESCRIBE_CONFIGS: Api(32, "DescribeConfigs", 1, 4, 4),
    ALTER_CONFIGS: Api(33, "AlterConfigs", 0, 2, 2),
    DESCRIBE_LOG_DIRS: Api(35, "DescribeLogDirs", 1, 5, 2),
    CREATE_PARTITIONS: Api(37, "CreatePartitions", 0, 3, 2),
    DELETE_GROUPS: Api(42, "DeleteGroups", 0, 3, 2),
    ELECT_LEADERS: Api(43, "ElectLeaders", 0, 2, 2),
    INCREMENTAL_ALTER_CONFIGS: Api(44, "IncrementalAlterConfigs", 0, 1, 1),
    ALTER_PARTITION_REASSIGNMENTS: Api(45, "AlterPartitionReassignments", 0, 1, 0),
    LIST_PARTITION_REASSIGNMENTS: Api(46, "ListPartitionReassignments", 0, 0, 0),
    OFFSET_DELETE: Api(47, "OffsetDelete", 0, 0, -1),
    DESCRIBE_CLIENT_QUOTAS: Api(48, "DescribeClientQuotas", 0, 1, 1),
    ALTER_CLIENT_QUOTAS: Api(49, "AlterClientQuotas", 0, 1, 1),
    DESCRIBE_USER_SCRAM_CREDENTIALS: Api(50, "DescribeUserScramCredentials", 0, 0, 0),
    ALTER_USER_SCRAM_CREDENTIALS: Api(51, "AlterUserScramCredentials", 0, 0, 0),
    DESCRIBE_QUORUM: Api(55, "DescribeQuorum", 0, 2, 0),
    UPDATE_FEATURES: Api(57, "UpdateFeatures", 0, 2, 0),
    DESCRIBE_CLUSTER: Api(60, "DescribeCluster", 0, 2, 0),
    DESCRIBE_PRODUCERS: Api(61, "DescribeProducers", 0, 0, 0),
    UNREGISTER_BROKER: Api(64, "UnregisterBroker", 0, 0, 0),
    LIST_TRANSACTIONS: Api(66, "ListTransactions", 0, 2, 0),
    CONSUMER_GROUP_HEARTBEAT: Api(68, "ConsumerGroupHeartbeat", 0, 1, 0),
    CONSUMER_GROUP_DESCRIBE: Api(69, "ConsumerGroupDescribe", 0, 1, 0),
    LIST_CONFIG_RESOURCES: Api(74, "ListConfigResources", 0, 1, 0),
    DESCRIBE_TOPIC_PARTITIONS: Api(75, "DescribeTopicPartitions", 0, 0, 0),
    SHARE_GROUP_HEARTBEAT: Api(76, "ShareGroupHeartbeat", 1, 1, 1),
    LIST_SCHEDULED_RECORDS: Api(10000, "ListScheduledRecords", 0, 0, 0),
    CHANGE_SCHEDULED_RECORDS: Api(10001, "ChangeScheduledRecords", 0, 0, 0),
}
