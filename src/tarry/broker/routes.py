"""The route table: for each API key its handler, its decoder and the versions served.

An API is in this table only when it works; but for ConsumerGroupHeartbeat and its describe, which
refuse in words that clients understand.  Produce is advertised from 0, since librdkafka switches
its codecs off when version 0 is missing (KAFKA-18659), and served from 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tarry.broker.apis import (
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from tarry.broker.request import RequestContext
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.registry import MESSAGES
from tarry.wire.reader import Reader

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

Handler = Callable[["Broker", RequestContext, Message], Message | None]
Decoder = Callable[[Reader, int], Message]


class Route:
    """How one API is served.  `version_advertised_min` differs from `version_min` for Produce."""

    def __init__(
        self,
        handle: Handler,
        decode: Decoder,
        version_min: int,
        version_max: int,
        version_advertised_min: int = -1,
    ) -> None:
        self.handle = handle
        self.decode = decode
        self.version_min = version_min
        self.version_max = version_max
        self.version_advertised_min = (
            version_min if version_advertised_min < 0 else version_advertised_min
        )


def make_routes() -> dict[int, Route]:
    """The table, by API key."""
    handlers: list[tuple[int, Handler, int, int]] = [
        (api_keys.PRODUCE, produce.handle, 3, 13),
        (api_keys.FETCH, fetch.handle, 4, 18),
        (api_keys.LIST_OFFSETS, list_offsets.handle, 1, 10),
        (api_keys.METADATA, metadata.handle, 0, 13),
        (api_keys.API_VERSIONS, api_versions.handle, 0, 4),
        (api_keys.CREATE_TOPICS, create_topics.handle, 2, 7),
        (api_keys.DELETE_TOPICS, delete_topics.handle, 1, 6),
        (api_keys.INIT_PRODUCER_ID, init_producer_id.handle, 0, 5),
        (api_keys.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch.handle, 2, 4),
        (api_keys.DESCRIBE_CONFIGS, describe_configs.handle, 1, 4),
        (api_keys.ALTER_CONFIGS, alter_configs.handle, 0, 2),
        (api_keys.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs.handle, 0, 1),
        (api_keys.CREATE_PARTITIONS, create_partitions.handle, 0, 3),
        (api_keys.DELETE_RECORDS, delete_records.handle, 0, 2),
        (api_keys.DESCRIBE_LOG_DIRS, describe_log_dirs.handle, 1, 4),
        (api_keys.DESCRIBE_CLUSTER, describe_cluster.handle, 0, 2),
        (api_keys.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions.handle, 0, 0),
        (api_keys.FIND_COORDINATOR, find_coordinator.handle, 0, 6),
        (api_keys.JOIN_GROUP, join_group.handle, 0, 9),
        (api_keys.SYNC_GROUP, sync_group.handle, 0, 5),
        (api_keys.HEARTBEAT, heartbeat.handle, 0, 4),
        (api_keys.LEAVE_GROUP, leave_group.handle, 0, 5),
        (api_keys.OFFSET_COMMIT, offset_commit.handle, 2, 9),
        (api_keys.OFFSET_FETCH, offset_fetch.handle, 1, 9),
        (api_keys.DESCRIBE_GROUPS, describe_groups.handle, 0, 6),
        (api_keys.LIST_GROUPS, list_groups.handle, 0, 5),
        (api_keys.DELETE_GROUPS, delete_groups.handle, 0, 2),
        (api_keys.OFFSET_DELETE, offset_delete.handle, 0, 0),
        (api_keys.DESCRIBE_PRODUCERS, describe_producers.handle, 0, 0),
        (api_keys.LIST_CONFIG_RESOURCES, list_config_resources.handle, 0, 1),
        (api_keys.CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat.handle, 0, 1),
        (api_keys.CONSUMER_GROUP_DESCRIBE, consumer_group_describe.handle, 0, 1),
    ]
    routes: dict[int, Route] = {}
    for key, handle, version_min, version_max in handlers:
        routes[key] = Route(handle, MESSAGES[key].decode_request, version_min, version_max)
    routes[api_keys.PRODUCE].version_advertised_min = 0
    return routes
