"""Written by `tools/generate_settings.py`: the broker's settings with their types."""

from __future__ import annotations


class SettingAttributes:
    """Attributes of `Settings`, one for each row of the table.

    A key with others behind it is in its own unit, also where the user gave another one.
    """

    flush_policy: str
    logging_format: str
    logging_level: str
    events_enable: bool
    events_interval_ms: int
    node_id: int
    broker_id: int
    broker_rack: str | None
    metadata_store: str
    metadata_store_ssl_ca_location: str | None
    metadata_store_ssl_certificate_location: str | None
    metadata_store_ssl_key_location: str | None
    metadata_store_credentials_location: str | None
    broker_session_timeout_ms: int
    broker_heartbeat_interval_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    unclean_leader_election_enable: bool
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    follower_replication_throttled_rate: int
    listeners: tuple[str, ...]
    advertised_listeners: tuple[str, ...] | None
    listener_security_protocol_map: str
    inter_broker_listener_name: str | None
    controller_listener_names: tuple[str, ...] | None
    log_dirs: tuple[str, ...] | None
    log_dir: tuple[str, ...] | None
    socket_request_max_bytes: int
    queued_max_request_bytes: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_listen_backlog_size: int
    connections_max_idle_ms: int
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    replica_lag_time_max_ms: int
    message_max_bytes: int
    max_decompressed_message_bytes: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    log_flush_interval_messages: int
    log_segment_bytes: int
    log_roll_ms: int
    log_roll_hours: int
    log_roll_jitter_ms: int
    log_roll_jitter_hours: int
    log_index_interval_bytes: int
    log_index_size_max_bytes: int
    log_message_timestamp_type: str
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_after_max_ms: int
    log_retention_bytes: int
    log_retention_ms: int
    log_retention_minutes: int | None
    log_retention_hours: int
    log_retention_check_interval_ms: int
    log_segment_delete_delay_ms: int
    log_cleanup_policy: tuple[str, ...]
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_delete_retention_ms: int
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    delay_pending_total_max_bytes: int
    fetch_max_bytes: int
    max_request_partition_size_limit: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    transaction_max_timeout_ms: int
    producer_purgatory_purge_interval_requests: int
    fetch_purgatory_purge_interval_requests: int
    authorizer_class_name: str
    remote_log_storage_system_enable: bool
