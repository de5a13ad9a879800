"""Written by `tools/generate_settings.py`: settings of clients as keyword arguments.

Type checkers and editors know each of them.  A number may be text: `"30s"` is a time.
"""

from __future__ import annotations

from typing import TypedDict

from tarry.client.settings import PartitionFunction


class ClientArguments(TypedDict, total=False):
    """Settings of every client."""

    bootstrap_servers: str | list[str] | tuple[str, ...]
    client_id: str
    security_protocol: str
    request_timeout_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    connections_max_idle_ms: int | str
    reconnect_backoff_ms: int | str
    reconnect_backoff_max_ms: int | str
    retry_backoff_ms: int | str
    retry_backoff_max_ms: int | str
    metadata_max_age_ms: int | str
    default_api_timeout_ms: int | str
    allow_auto_create_topics: bool
    close_timeout_ms: int | str
    send_buffer_bytes: int | str
    receive_buffer_bytes: int | str


class ProducerArguments(ClientArguments, total=False):
    """Settings of producer."""

    acks: int | str
    enable_idempotence: bool
    linger_ms: int | str
    batch_size: int | str
    buffer_memory: int | str
    compression_type: str
    compression_gzip_level: int | str
    compression_lz4_level: int | str
    compression_zstd_level: int | str
    partitioner: str | PartitionFunction
    max_request_size: int | str
    max_block_ms: int | str
    delivery_timeout_ms: int | str
    max_in_flight_requests_per_connection: int | str


class ConsumerArguments(ClientArguments, total=False):
    """Settings of consumer."""

    fetch_min_bytes: int | str
    fetch_max_wait_ms: int | str
    fetch_max_bytes: int | str
    max_partition_fetch_bytes: int | str
    max_poll_records: int | str
    auto_offset_reset: str
    isolation_level: str
    client_rack: str
    exclude_internal_topics: bool
    group_id: str
    group_instance_id: str
    session_timeout_ms: int | str
    heartbeat_interval_ms: int | str
    heartbeat_mode: str
    heartbeat_ramp: bool
    max_poll_interval_ms: int | str
    partition_assignment_strategy: str
    enable_auto_commit: bool
    auto_commit_interval_ms: int | str
