"""The route table: for each API key its versions, its access, its decoder and its handler.

The table has the APIs that work, and APIs whose refusal clients need: those of the new group
protocols, and those of features that Tarry lacks (access control, quotas, logins, transactions, a
quorum).  Produce is advertised from version 0, because librdkafka switches its codecs off if
version 0 is missing (KAFKA-18659), and served from version 3.

A handler takes context and request.  Its further arguments are bound here, once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tarry.broker.access import OPEN
from tarry.broker.apis import (
    acls,
    alter_configs,
    api_versions,
    client_quotas,
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
    describe_quorum,
    describe_topic_partitions,
    fetch,
    fetch_steps,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_commit_steps,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    produce_steps,
    scram_credentials,
    share_group_heartbeat,
    update_features,
)
from tarry.broker.broker import Broker
from tarry.broker.delayed.throttling import Throttling
from tarry.broker.group_kinds import routes_of_kinds
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_client_quotas import decode_alter_client_quotas_request
from tarry.protocol.messages.alter_configs import decode_alter_configs_request
from tarry.protocol.messages.alter_partition_reassignments import (
    decode_alter_partition_reassignments_request,
)
from tarry.protocol.messages.alter_user_scram_credentials import (
    decode_alter_user_scram_credentials_request,
)
from tarry.protocol.messages.api_versions import decode_api_versions_request
from tarry.protocol.messages.consumer_group_describe import decode_consumer_group_describe_request
from tarry.protocol.messages.consumer_group_heartbeat import decode_consumer_group_heartbeat_request
from tarry.protocol.messages.create_acls import decode_create_acls_request
from tarry.protocol.messages.create_partitions import decode_create_partitions_request
from tarry.protocol.messages.create_topics import decode_create_topics_request
from tarry.protocol.messages.delete_acls import decode_delete_acls_request
from tarry.protocol.messages.delete_groups import decode_delete_groups_request
from tarry.protocol.messages.delete_records import decode_delete_records_request
from tarry.protocol.messages.delete_topics import decode_delete_topics_request
from tarry.protocol.messages.describe_acls import decode_describe_acls_request
from tarry.protocol.messages.describe_client_quotas import decode_describe_client_quotas_request
from tarry.protocol.messages.describe_cluster import decode_describe_cluster_request
from tarry.protocol.messages.describe_configs import decode_describe_configs_request
from tarry.protocol.messages.describe_groups import decode_describe_groups_request
from tarry.protocol.messages.describe_log_dirs import decode_describe_log_dirs_request
from tarry.protocol.messages.describe_producers import decode_describe_producers_request
from tarry.protocol.messages.describe_quorum import decode_describe_quorum_request
from tarry.protocol.messages.describe_topic_partitions import (
    decode_describe_topic_partitions_request,
)
from tarry.protocol.messages.describe_user_scram_credentials import (
    decode_describe_user_scram_credentials_request,
)
from tarry.protocol.messages.elect_leaders import decode_elect_leaders_request
from tarry.protocol.messages.fetch import decode_fetch_request
from tarry.protocol.messages.find_coordinator import decode_find_coordinator_request
from tarry.protocol.messages.incremental_alter_configs import (
    decode_incremental_alter_configs_request,
)
from tarry.protocol.messages.init_producer_id import decode_init_producer_id_request
from tarry.protocol.messages.list_config_resources import decode_list_config_resources_request
from tarry.protocol.messages.list_groups import decode_list_groups_request
from tarry.protocol.messages.list_offsets import decode_list_offsets_request
from tarry.protocol.messages.list_partition_reassignments import (
    decode_list_partition_reassignments_request,
)
from tarry.protocol.messages.list_transactions import decode_list_transactions_request
from tarry.protocol.messages.metadata import decode_metadata_request
from tarry.protocol.messages.offset_commit import decode_offset_commit_request
from tarry.protocol.messages.offset_delete import decode_offset_delete_request
from tarry.protocol.messages.offset_fetch import decode_offset_fetch_request
from tarry.protocol.messages.offset_for_leader_epoch import decode_offset_for_leader_epoch_request
from tarry.protocol.messages.produce import decode_produce_request
from tarry.protocol.messages.share_group_heartbeat import decode_share_group_heartbeat_request
from tarry.protocol.messages.unregister_broker import decode_unregister_broker_request
from tarry.protocol.messages.update_features import decode_update_features_request


def make_routes(broker: Broker) -> list[Route[Any]]:
    """Return the table; each handler has its further arguments of this broker bound."""
    return [
        *_of_records(broker),
        *_of_the_cluster(broker),
        *_of_groups(broker),
        *routes_of_kinds(broker.long_answers, broker.groups, broker.random),
        *_of_what_is_absent(broker),
    ]


# A row has two lines: key, versions, access and decoder; and the handler.
# fmt: off
def _of_records(broker: Broker) -> list[Route[Any]]:
    topics = broker.topics
    long_answers = broker.long_answers
    produces = produce.ProduceHandler(
        topics,
        broker.this_turn,
        broker.flushes,
        broker.produces,
        broker.recompressions,
        throttling=Throttling(broker.this_turn, broker.timer, long_answers),
        take_steps=partial(produce_steps.begin, long_answers),
    )
    fetches = fetch.FetchHandler(
        topics,
        broker.fetches,
        broker.neighbours,
        broker.settings.fetch_max_bytes,
        take_steps=partial(fetch_steps.begin, long_answers),
    )
    return [
        Route(api_keys.PRODUCE, 3, 13, OPEN, decode_produce_request,
              produces.handle, version_advertised_min=0),
        Route(api_keys.FETCH, 4, 18, OPEN, decode_fetch_request,
              fetches.handle),
        Route(api_keys.LIST_OFFSETS, 1, 11, OPEN, decode_list_offsets_request,
              partial(list_offsets.handle, long_answers, topics)),
        Route(api_keys.INIT_PRODUCER_ID, 0, 5, OPEN, decode_init_producer_id_request,
              partial(init_producer_id.handle, broker.producer_ids, broker.changes)),
        Route(api_keys.OFFSET_FOR_LEADER_EPOCH, 2, 4, OPEN, decode_offset_for_leader_epoch_request,
              partial(offset_for_leader_epoch.handle, long_answers, topics)),
        Route(api_keys.DELETE_RECORDS, 0, 2, OPEN, decode_delete_records_request,
              partial(delete_records.handle, long_answers, topics, broker.record_deletions)),
        Route(api_keys.DESCRIBE_PRODUCERS, 0, 0, OPEN, decode_describe_producers_request,
              partial(describe_producers.handle, long_answers, topics)),
        Route(api_keys.DESCRIBE_LOG_DIRS, 1, 5, OPEN, decode_describe_log_dirs_request,
              partial(describe_log_dirs.handle, long_answers, topics, broker.disk,
                      broker.settings)),
    ]


def _of_the_cluster(broker: Broker) -> list[Route[Any]]:
    topics = broker.topics
    long_answers = broker.long_answers
    changes = broker.changes
    view = broker.cluster_view
    sources = describe_configs.ConfigSources(
        view.state, broker.settings, broker.groups, broker.levels, broker.calendars
    )
    return [
        Route(api_keys.API_VERSIONS, 0, 5, OPEN, decode_api_versions_request,
              partial(api_versions.handle, broker.routes, view, broker.store)),
        Route(api_keys.METADATA, 0, 13, OPEN, decode_metadata_request,
              partial(metadata.handle, long_answers, view, changes)),
        Route(api_keys.CREATE_TOPICS, 2, 7, OPEN, decode_create_topics_request,
              partial(create_topics.handle, changes)),
        Route(api_keys.DELETE_TOPICS, 1, 6, OPEN, decode_delete_topics_request,
              partial(delete_topics.handle, changes)),
        Route(api_keys.CREATE_PARTITIONS, 0, 3, OPEN, decode_create_partitions_request,
              partial(create_partitions.handle, changes)),
        Route(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, 0, OPEN,
              decode_describe_topic_partitions_request,
              partial(describe_topic_partitions.handle, long_answers, view, broker.settings)),
        Route(api_keys.DESCRIBE_CONFIGS, 1, 4, OPEN, decode_describe_configs_request,
              partial(describe_configs.handle, long_answers, sources)),
        Route(api_keys.ALTER_CONFIGS, 0, 2, OPEN, decode_alter_configs_request,
              partial(alter_configs.handle, changes)),
        Route(api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1, OPEN,
              decode_incremental_alter_configs_request,
              partial(incremental_alter_configs.handle, changes, broker.levels)),
        Route(api_keys.LIST_CONFIG_RESOURCES, 0, 1, OPEN, decode_list_config_resources_request,
              partial(list_config_resources.handle, long_answers, topics, view)),
        Route(api_keys.DESCRIBE_CLUSTER, 0, 2, OPEN, decode_describe_cluster_request,
              partial(describe_cluster.handle, view)),
        Route(api_keys.ELECT_LEADERS, 0, 2, OPEN, decode_elect_leaders_request,
              partial(cluster_requests.elect, changes)),
        Route(api_keys.ALTER_PARTITION_REASSIGNMENTS, 0, 1, OPEN,
              decode_alter_partition_reassignments_request,
              partial(cluster_requests.reassign, changes)),
        Route(api_keys.LIST_PARTITION_REASSIGNMENTS, 0, 0, OPEN,
              decode_list_partition_reassignments_request,
              partial(list_partition_reassignments.handle, long_answers, view.state)),
        Route(api_keys.UNREGISTER_BROKER, 0, 0, OPEN, decode_unregister_broker_request,
              partial(cluster_requests.unregister, changes)),
        Route(api_keys.UPDATE_FEATURES, 0, 2, OPEN, decode_update_features_request,
              partial(update_features.handle, changes)),
    ]


def _of_groups(broker: Broker) -> list[Route[Any]]:
    groups = broker.groups
    long_answers = broker.long_answers
    return [
        Route(api_keys.FIND_COORDINATOR, 0, 6, OPEN, decode_find_coordinator_request,
              partial(find_coordinator.handle, long_answers, broker.coordinators,
                      broker.changes, broker.cluster_view)),
        Route(api_keys.OFFSET_COMMIT, 2, 10, OPEN, decode_offset_commit_request,
              partial(offset_commit.handle, groups,
                      partial(offset_commit_steps.begin, long_answers, groups))),
        Route(api_keys.OFFSET_FETCH, 1, 10, OPEN, decode_offset_fetch_request,
              partial(offset_fetch.handle, long_answers, groups)),
        Route(api_keys.OFFSET_DELETE, 0, 0, OPEN, decode_offset_delete_request,
              partial(offset_delete.handle, long_answers, groups)),
        Route(api_keys.DESCRIBE_GROUPS, 0, 6, OPEN, decode_describe_groups_request,
              partial(describe_groups.handle, long_answers, groups)),
        Route(api_keys.LIST_GROUPS, 0, 5, OPEN, decode_list_groups_request,
              partial(list_groups.handle, long_answers, groups)),
        Route(api_keys.DELETE_GROUPS, 0, 3, OPEN, decode_delete_groups_request,
              partial(delete_groups.handle, long_answers, groups)),
        Route(api_keys.CONSUMER_GROUP_HEARTBEAT, 0, 1, OPEN,
              decode_consumer_group_heartbeat_request,
              consumer_group_heartbeat.handle),
        Route(api_keys.CONSUMER_GROUP_DESCRIBE, 0, 1, OPEN, decode_consumer_group_describe_request,
              partial(consumer_group_describe.handle, long_answers)),
        Route(api_keys.SHARE_GROUP_HEARTBEAT, 1, 1, OPEN, decode_share_group_heartbeat_request,
              share_group_heartbeat.handle),
    ]


def _of_what_is_absent(broker: Broker) -> list[Route[Any]]:
    return [
        Route(api_keys.DESCRIBE_ACLS, 1, 3, OPEN, decode_describe_acls_request,
              acls.describe),
        Route(api_keys.CREATE_ACLS, 1, 3, OPEN, decode_create_acls_request,
              acls.create),
        Route(api_keys.DELETE_ACLS, 1, 3, OPEN, decode_delete_acls_request,
              acls.delete),
        Route(api_keys.DESCRIBE_CLIENT_QUOTAS, 0, 1, OPEN, decode_describe_client_quotas_request,
              client_quotas.describe),
        Route(api_keys.ALTER_CLIENT_QUOTAS, 0, 1, OPEN, decode_alter_client_quotas_request,
              partial(client_quotas.alter, broker.long_answers)),
        Route(api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, OPEN,
              decode_describe_user_scram_credentials_request,
              scram_credentials.describe),
        Route(api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, OPEN,
              decode_alter_user_scram_credentials_request,
              partial(scram_credentials.alter, broker.long_answers)),
        Route(api_keys.LIST_TRANSACTIONS, 0, 2, OPEN, decode_list_transactions_request,
              list_transactions.handle),
        Route(api_keys.DESCRIBE_QUORUM, 0, 2, OPEN, decode_describe_quorum_request,
              partial(describe_quorum.handle, broker.settings)),
    ]
# fmt: on
