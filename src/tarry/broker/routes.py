"""The route table: for each API key its decoder, its handler and the versions served.

An API is in this table only when it works; but for ConsumerGroupHeartbeat and its describe, which
refuse in words that clients understand.  Produce is advertised from 0, since librdkafka switches
its codecs off when version 0 is missing (KAFKA-18659), and served from 3.

A handler takes context and request.  Whatever else it needs is bound to it here, once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tarry.broker.apis import (
    alter_configs,
    api_versions,
    cluster_requests,
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
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from tarry.broker.broker import Broker
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_configs import decode_alter_configs_request
from tarry.protocol.messages.alter_partition_reassignments import (
    decode_alter_partition_reassignments_request,
)
from tarry.protocol.messages.api_versions import decode_api_versions_request
from tarry.protocol.messages.consumer_group_describe import decode_consumer_group_describe_request
from tarry.protocol.messages.consumer_group_heartbeat import decode_consumer_group_heartbeat_request
from tarry.protocol.messages.create_partitions import decode_create_partitions_request
from tarry.protocol.messages.create_topics import decode_create_topics_request
from tarry.protocol.messages.delete_groups import decode_delete_groups_request
from tarry.protocol.messages.delete_records import decode_delete_records_request
from tarry.protocol.messages.delete_topics import decode_delete_topics_request
from tarry.protocol.messages.describe_cluster import decode_describe_cluster_request
from tarry.protocol.messages.describe_configs import decode_describe_configs_request
from tarry.protocol.messages.describe_groups import decode_describe_groups_request
from tarry.protocol.messages.describe_log_dirs import decode_describe_log_dirs_request
from tarry.protocol.messages.describe_producers import decode_describe_producers_request
from tarry.protocol.messages.describe_topic_partitions import (
    decode_describe_topic_partitions_request,
)
from tarry.protocol.messages.elect_leaders import decode_elect_leaders_request
from tarry.protocol.messages.fetch import decode_fetch_request
from tarry.protocol.messages.find_coordinator import decode_find_coordinator_request
from tarry.protocol.messages.heartbeat import decode_heartbeat_request
from tarry.protocol.messages.incremental_alter_configs import (
    decode_incremental_alter_configs_request,
)
from tarry.protocol.messages.init_producer_id import decode_init_producer_id_request
from tarry.protocol.messages.join_group import decode_join_group_request
from tarry.protocol.messages.leave_group import decode_leave_group_request
from tarry.protocol.messages.list_config_resources import decode_list_config_resources_request
from tarry.protocol.messages.list_groups import decode_list_groups_request
from tarry.protocol.messages.list_offsets import decode_list_offsets_request
from tarry.protocol.messages.list_partition_reassignments import (
    decode_list_partition_reassignments_request,
)
from tarry.protocol.messages.metadata import decode_metadata_request
from tarry.protocol.messages.offset_commit import decode_offset_commit_request
from tarry.protocol.messages.offset_delete import decode_offset_delete_request
from tarry.protocol.messages.offset_fetch import decode_offset_fetch_request
from tarry.protocol.messages.offset_for_leader_epoch import decode_offset_for_leader_epoch_request
from tarry.protocol.messages.produce import decode_produce_request
from tarry.protocol.messages.sync_group import decode_sync_group_request
from tarry.protocol.messages.unregister_broker import decode_unregister_broker_request


def make_routes(broker: Broker) -> dict[int, Route[Any]]:
    """Return the table by API key, with every handler bound to what it needs of this broker."""
    routes: dict[int, Route[Any]] = {}
    for route in (*_of_records(broker), *_of_the_cluster(broker, routes), *_of_groups(broker)):
        routes[route.api_key] = route
    routes[api_keys.PRODUCE].version_advertised_min = 0
    return routes


# A row is two lines: key, versions and decoder, and the handler.
# fmt: off
def _of_records(broker: Broker) -> list[Route[Any]]:
    topics = broker.topics
    produces = produce.ProduceHandler(
        topics, broker.this_turn, broker.flushes, broker.produces, broker.recompressions
    )
    return [
        Route(api_keys.PRODUCE, 3, 13, decode_produce_request,
              produces.handle),
        Route(api_keys.FETCH, 4, 18, decode_fetch_request,
              partial(fetch.handle, topics, broker.fetches, broker.settings.fetch_max_bytes)),
        Route(api_keys.LIST_OFFSETS, 1, 10, decode_list_offsets_request,
              partial(list_offsets.handle, topics)),
        Route(api_keys.INIT_PRODUCER_ID, 0, 5, decode_init_producer_id_request,
              partial(init_producer_id.handle, broker.producer_ids, broker.changes)),
        Route(api_keys.OFFSET_FOR_LEADER_EPOCH, 2, 4, decode_offset_for_leader_epoch_request,
              partial(offset_for_leader_epoch.handle, topics)),
        Route(api_keys.DELETE_RECORDS, 0, 2, decode_delete_records_request,
              partial(delete_records.handle, topics, broker.record_deletions)),
        Route(api_keys.DESCRIBE_PRODUCERS, 0, 0, decode_describe_producers_request,
              partial(describe_producers.handle, topics)),
        Route(api_keys.DESCRIBE_LOG_DIRS, 1, 4, decode_describe_log_dirs_request,
              partial(describe_log_dirs.handle, topics, broker.disk, broker.settings)),
    ]


def _of_the_cluster(broker: Broker, routes: dict[int, Route[Any]]) -> list[Route[Any]]:
    topics = broker.topics
    changes = broker.changes
    view = broker.cluster_view
    return [
        Route(api_keys.API_VERSIONS, 0, 4, decode_api_versions_request,
              partial(api_versions.handle, routes)),
        Route(api_keys.METADATA, 0, 13, decode_metadata_request,
              partial(metadata.handle, view, changes)),
        Route(api_keys.CREATE_TOPICS, 2, 7, decode_create_topics_request,
              partial(create_topics.handle, changes)),
        Route(api_keys.DELETE_TOPICS, 1, 6, decode_delete_topics_request,
              partial(delete_topics.handle, changes)),
        Route(api_keys.CREATE_PARTITIONS, 0, 3, decode_create_partitions_request,
              partial(create_partitions.handle, changes)),
        Route(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, 0, decode_describe_topic_partitions_request,
              partial(describe_topic_partitions.handle, view, broker.settings)),
        Route(api_keys.DESCRIBE_CONFIGS, 1, 4, decode_describe_configs_request,
              partial(describe_configs.handle, view.state, broker.settings, broker.groups,
                      broker.levels)),
        Route(api_keys.ALTER_CONFIGS, 0, 2, decode_alter_configs_request,
              partial(alter_configs.handle, changes)),
        Route(api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1, decode_incremental_alter_configs_request,
              partial(incremental_alter_configs.handle, changes, broker.levels)),
        Route(api_keys.LIST_CONFIG_RESOURCES, 0, 1, decode_list_config_resources_request,
              partial(list_config_resources.handle, topics, view)),
        Route(api_keys.DESCRIBE_CLUSTER, 0, 2, decode_describe_cluster_request,
              partial(describe_cluster.handle, view)),
        Route(api_keys.ELECT_LEADERS, 0, 2, decode_elect_leaders_request,
              partial(cluster_requests.elect, changes)),
        Route(api_keys.ALTER_PARTITION_REASSIGNMENTS, 0, 1,
              decode_alter_partition_reassignments_request,
              partial(cluster_requests.reassign, changes)),
        Route(api_keys.LIST_PARTITION_REASSIGNMENTS, 0, 0,
              decode_list_partition_reassignments_request,
              partial(list_partition_reassignments.handle, view.state)),
        Route(api_keys.UNREGISTER_BROKER, 0, 0, decode_unregister_broker_request,
              partial(cluster_requests.unregister, changes)),
    ]


def _of_groups(broker: Broker) -> list[Route[Any]]:
    topics = broker.topics
    groups = broker.groups
    return [
        Route(api_keys.FIND_COORDINATOR, 0, 6, decode_find_coordinator_request,
              partial(find_coordinator.handle, broker.coordinators, topics, broker.changes,
                      broker.cluster_view)),
        Route(api_keys.JOIN_GROUP, 0, 9, decode_join_group_request,
              partial(join_group.handle, groups, broker.random)),
        Route(api_keys.SYNC_GROUP, 0, 5, decode_sync_group_request,
              partial(sync_group.handle, groups)),
        Route(api_keys.HEARTBEAT, 0, 4, decode_heartbeat_request,
              partial(heartbeat.handle, groups)),
        Route(api_keys.LEAVE_GROUP, 0, 5, decode_leave_group_request,
              partial(leave_group.handle, groups)),
        Route(api_keys.OFFSET_COMMIT, 2, 9, decode_offset_commit_request,
              partial(offset_commit.handle, groups, topics)),
        Route(api_keys.OFFSET_FETCH, 1, 9, decode_offset_fetch_request,
              partial(offset_fetch.handle, groups, topics)),
        Route(api_keys.OFFSET_DELETE, 0, 0, decode_offset_delete_request,
              partial(offset_delete.handle, groups, topics)),
        Route(api_keys.DESCRIBE_GROUPS, 0, 6, decode_describe_groups_request,
              partial(describe_groups.handle, groups)),
        Route(api_keys.LIST_GROUPS, 0, 5, decode_list_groups_request,
              partial(list_groups.handle, groups)),
        Route(api_keys.DELETE_GROUPS, 0, 2, decode_delete_groups_request,
              partial(delete_groups.handle, groups)),
        Route(api_keys.CONSUMER_GROUP_HEARTBEAT, 0, 1, decode_consumer_group_heartbeat_request,
              consumer_group_heartbeat.handle),
        Route(api_keys.CONSUMER_GROUP_DESCRIBE, 0, 1, decode_consumer_group_describe_request,
              consumer_group_describe.handle),
    ]
# fmt: on
