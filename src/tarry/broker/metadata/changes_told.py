"""Lines in the log about changes of topics and settings: what changed, and who asked for it.

A line is worded before the change is proposed, while the values before it are known, and written
when the change has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.repeated import printable
from tarry.base.settings import IDLE_SETTINGS
from tarry.broker.request import RequestContext
from tarry.cluster.state.records import (
    EVERY_BROKER,
    BrokerConfigChanged,
    BrokerUnregistered,
    ConfigChanged,
    FeatureLevelChanged,
    GroupConfigChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.state.state import ClusterState

logger = logging.getLogger("tarry.broker")

# Number of lines for one request, which may create a thousand topics.
LINES_PER_REQUEST_MAX: Final = 20


def worded(view: ClusterState, records: list[MetadataRecord]) -> list[str]:
    """Return a clause for each change that these records make."""
    lines = [line for one in records[:LINES_PER_REQUEST_MAX] if (line := _line(view, one))]
    left_out = len(records) - LINES_PER_REQUEST_MAX
    return [*lines, f"and {left_out} changes more in one request"] if left_out > 0 else lines


def asker(context: RequestContext) -> str:
    """Return a text that names the asker by address and client id, which the client has chosen
    itself.
    """
    client_id = context.client_id
    name = f"client '{printable(client_id)}'" if client_id else "a client without an id"
    return f"{name} at {context.connection.peer}"


def tell(lines: list[str], by: str, error_code: int, refused: str) -> None:
    """Write the lines of a change that has ended; `refused` is the wording for one that was not
    kept.
    """
    for line in lines:
        if error_code == errors.NONE:
            logger.info("%s, by %s", line, by)
        elif error_code == errors.REQUEST_TIMED_OUT:
            logger.warning("not confirmed in time, it may still happen: %s, by %s", line, by)
        else:
            logger.warning("%s: %s, by %s", refused, line, by)


def changed_text(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a text with each key that has another value now, and its value before."""
    parts = []
    for key in sorted({**before, **after}):
        old, new = before.get(key), after.get(key)
        if old != new:
            was = "" if old is None else f" (was {printable(old)})"
            parts.append(f"{key} unset{was}" if new is None else f"{key}={printable(new)}{was}")
    return ", ".join(parts)


def _line(view: ClusterState, record: MetadataRecord) -> str:
    """Return the clause for a record; "" for a record that no user asks for by itself."""
    if isinstance(record, TopicCreated):
        configs = changed_text({}, record.configs)
        with_configs = f" and {configs}" if configs else ""
        return f"topic {record.name} created with {_count(len(record.partitions))}{with_configs}"
    if isinstance(record, BrokerConfigChanged):
        before = view.configs_of_broker(record.broker_id)
        whose = "all brokers" if record.broker_id == EVERY_BROKER else f"broker {record.broker_id}"
        told = f"settings of {whose} changed: {changed_text(before, record.configs)}"
        idle = [key for key in sorted(IDLE_SETTINGS) if before.get(key) != record.configs.get(key)]
        return f"{told} (without effect: {', '.join(idle)})" if idle else told
    if isinstance(record, GroupConfigChanged):
        before = view.group_configs.get(record.group_id, {})
        told = changed_text(before, record.configs)
        return f"settings of group {printable(record.group_id)} changed (without effect): {told}"
    if isinstance(record, FeatureLevelChanged):
        was = view.feature_levels.get(record.name, 0)
        return f"feature {printable(record.name)} at level {record.level} (was {was})"
    if isinstance(record, BrokerUnregistered):
        return f"broker {record.broker_id} taken out of the cluster"
    if not isinstance(record, TopicDeleted | PartitionsAdded | ConfigChanged | PartitionChanged):
        return ""
    topic = view.topic_by_id(record.topic_id)
    assert topic is not None
    if isinstance(record, PartitionChanged):
        return _partition_line(
            f"{topic.name}-{record.index}", topic.partitions[record.index], record.row
        )
    count = len(topic.partitions)
    if isinstance(record, TopicDeleted):
        return f"topic {topic.name} deleted with {_count(count)}"
    if isinstance(record, PartitionsAdded):
        more = len(record.partitions)
        return f"topic {topic.name} grown from {count} to {_count(count + more)}"
    return f"settings of topic {topic.name} changed: {changed_text(topic.configs, record.configs)}"


def _partition_line(name: str, before: PartitionRow, after: PartitionRow) -> str:
    parts = []
    if before.replicas != after.replicas:
        parts.append(f"replicas {_ids(after.replicas)} (were {_ids(before.replicas)})")
    is_unclean = after.unclean_epoch == after.leader_epoch > before.leader_epoch
    if before.leader_id != after.leader_id or is_unclean:
        how = "elected uncleanly" if is_unclean else "elected"
        parts.append(f"broker {after.leader_id} {how} (before it led {before.leader_id})")
    return f"partition {name}: {', '.join(parts)}" if parts else ""


def _ids(broker_ids: list[int]) -> str:
    return ",".join(map(str, broker_ids))


def _count(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"
