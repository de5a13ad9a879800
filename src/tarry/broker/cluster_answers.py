"""What several APIs tell of the cluster: where to reach a broker, what a client may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.broker.broker import Broker
    from tarry.broker.request import RequestContext

# Sets of operations as bits by Kafka's numbers (KIP-430).  Without access control everything
# that the resource knows is allowed.
# On a topic: READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
# On the cluster: CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS,
# IDEMPOTENT_WRITE.
CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
# On a group: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
GROUP_OPERATIONS: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))
# The client did not ask.
OPERATIONS_NOT_ASKED: Final = -(2**31)


def address_for(broker: Broker, context: RequestContext) -> tuple[str, int]:
    """Host and port of this broker as its peer knows it: by the listener that it came through."""
    return broker.endpoints[context.connection.listener]


def offline_replicas(broker: Broker, topic: str, index: int) -> list[int]:
    """This broker's id if its replica is damaged: the log takes no more records and is read up
    to its flaw only.  Clients show this field of Kafka's and do not choose brokers by it."""
    partition = broker.topics.partition(topic, index)
    is_damaged = partition is not None and partition.log.flaw_offset >= 0
    return [broker.broker_id] if is_damaged else []
