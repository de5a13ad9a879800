"""API keys, and for each the versions that our schema describes.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from typing import Final

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
DESCRIBE_CONFIGS: Final = 32
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_TOPIC_PARTITIONS: Final = 75


class Api:
    """One API; `flexible_from` is -1 if no version is flexible."""

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
    LIST_OFFSETS: Api(2, "ListOffsets", 1, 10, 6),
    METADATA: Api(3, "Metadata", 0, 13, 9),
    API_VERSIONS: Api(18, "ApiVersions", 0, 4, 3),
    CREATE_TOPICS: Api(19, "CreateTopics", 2, 7, 5),
    DELETE_TOPICS: Api(20, "DeleteTopics", 1, 6, 4),
    INIT_PRODUCER_ID: Api(22, "InitProducerId", 0, 5, 2),
    OFFSET_FOR_LEADER_EPOCH: Api(23, "OffsetForLeaderEpoch", 2, 4, 4),
    DESCRIBE_CONFIGS: Api(32, "DescribeConfigs", 1, 4, 4),
    DESCRIBE_CLUSTER: Api(60, "DescribeCluster", 0, 2, 0),
    DESCRIBE_TOPIC_PARTITIONS: Api(75, "DescribeTopicPartitions", 0, 0, 0),
}
