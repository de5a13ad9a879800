"""Arguments of an admin client, checked before a request is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.client.core.admin.calls import NewTopic
from tarry.client.core.admin.configs import DELETE, SUBTRACT, ConfigChange
from tarry.client.core.admin.partitions import TO_THE_END
from tarry.client.core.arguments import check_offset, names_of, place_of
from tarry.client.core.consumer.lookup import LATEST, MAX_TIMESTAMP
from tarry.client.core.outgoing import check_topic
from tarry.records.batch import TIMESTAMP_MAX

# Largest number in a 32-bit field of a request.
NUMBER_MAX: Final = 2**31 - 1

# Largest level of a feature in the 16-bit field of a request.
LEVEL_MAX: Final = 2**15 - 1


def new_topics_of(topics: object) -> list[NewTopic]:
    """Return the topics to create, checked."""
    if isinstance(topics, str | bytes | NewTopic) or not isinstance(topics, Iterable):
        raise TypeError(
            f'create_topics takes topics such as [NewTopic("a", 3)], not {topics!r:.60}'
        )
    return [_new_topic(one) for one in topics]


def _new_topic(one: object) -> NewTopic:
    if not isinstance(one, NewTopic):
        raise TypeError(f'create_topics takes topics such as NewTopic("a", 3), not {one!r:.60}')
    what = f"NewTopic({one.name!r:.60})"
    check_topic(one.name)
    check_number(f"{what}: partition_count", one.partition_count, -1)
    check_number(f"{what}: replication_factor", one.replication_factor, -1)
    if not isinstance(one.configs, Mapping):
        raise TypeError(f'{what}: configs={one.configs!r:.60} is no mapping such as {{"a": "b"}}')
    for name, value in one.configs.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(
                f"{what}: configs takes names and values as str, not {name!r:.60}: {value!r:.60}"
            )
    if one.assignment is not None:
        check_assignment(what, one.assignment)
    return one


def check_assignment(what: str, assignment: object) -> None:
    """Raise TypeError unless the assignment lists broker ids for each partition."""
    is_listed = isinstance(assignment, Sequence) and not isinstance(assignment, str | bytes)
    for one in assignment if is_listed else [None]:  # type: ignore[attr-defined]
        if not isinstance(one, Sequence) or any(type(broker) is not int for broker in one):
            raise TypeError(
                f"{what}: an assignment has the ids of brokers for each partition, such as "
                f"[[1, 2], [2, 3]], not {assignment!r:.60}"
            )


def check_number(what: str, number: object, least: int) -> None:
    if type(number) is not int:
        raise TypeError(f"{what}={number!r:.60} is no whole number: give an int")
    if not least <= number <= NUMBER_MAX:
        raise ValueError(f"{what}={number} is not between {least} and {NUMBER_MAX}")


def feature_levels(levels: object) -> dict[str, int]:
    """Return the feature levels by feature name, checked."""
    if not isinstance(levels, Mapping) or not all(isinstance(name, str) for name in levels):
        raise TypeError(
            f"update_features takes levels by feature, not {levels!r:.60}: give a mapping, such as "
            '{"tarry.group.configs": 1}'
        )
    for name, level in levels.items():
        check_number(f"update_features: {name}", level, 0)
        if level > LEVEL_MAX:
            raise ValueError(f"update_features: {name}={level} is not between 0 and {LEVEL_MAX}")
    return dict(levels)


def check_broker_id(what: str, broker_id: object) -> None:
    """Raise an error unless `broker_id` is None or the id of a broker."""
    if broker_id is not None:
        check_number(f"{what}: broker_id", broker_id, 0)


def check_group_id(what: str, group_id: object) -> None:
    names_of(what, [group_id])


def changes_of(what: str, changes: object) -> list[ConfigChange]:
    """Return the changes of settings, checked."""
    example = 'ConfigChange("retention.ms", SET, "60000")'
    if isinstance(changes, str | Mapping | ConfigChange) or not isinstance(changes, Iterable):
        raise TypeError(f"{what} takes changes such as [{example}], not {changes!r:.60}")
    found: list[ConfigChange] = []
    for one in changes:
        if not isinstance(one, ConfigChange):
            raise TypeError(f"{what} takes changes such as {example}, not {one!r:.60}")
        if not isinstance(one.name, str) or not isinstance(one.value, str | None):
            raise TypeError(f"{what} takes names and values as str, not {one!r:.90}")
        if type(one.operation) is not int or not 0 <= one.operation <= SUBTRACT:
            raise ValueError(f"{what}: {one!r:.90} does none of SET, DELETE, APPEND and SUBTRACT")
        if (one.value is None) != (one.operation == DELETE):
            raise ValueError(
                f"{what}: {one!r:.90}: DELETE has no value, every other change has one"
            )
        found.append(one)
    return found


def ends_of(offsets: object) -> dict[TopicPartition, int]:
    """Return the offsets before which records are deleted, by partition."""
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f'delete_records takes offsets such as {{("orders", 0): 42}}, not {offsets!r:.60}'
        )
    found: dict[TopicPartition, int] = {}
    for place, offset in offsets.items():
        if offset != TO_THE_END or isinstance(offset, float):
            check_offset("delete_records", offset)
        found[place_of("delete_records", place)] = offset
    return found


def targets_of(targets: object) -> dict[TopicPartition, list[int] | None]:
    """Return the target replicas by partition, checked; None for a partition cancels its
    reassignment."""
    what = "alter_partition_reassignments"
    if not isinstance(targets, Mapping):
        raise TypeError(
            f'{what} takes replicas such as {{("orders", 0): [1, 2]}}, not {targets!r:.60}'
        )
    found: dict[TopicPartition, list[int] | None] = {}
    for place, replicas in targets.items():
        if replicas is not None:
            check_assignment(what, [replicas])
        found[place_of(what, place)] = None if replicas is None else list(replicas)
    return found


def asked_times_of(what: str, times: object) -> dict[TopicPartition, int]:
    """Return the times to look up (or EARLIEST, LATEST, MAX_TIMESTAMP) by partition, checked."""
    if not isinstance(times, Mapping):
        raise TypeError(f'{what} takes times such as {{("orders", 0): LATEST}}, not {times!r:.60}')
    found: dict[TopicPartition, int] = {}
    for place, time in times.items():
        if type(time) is not int:
            raise TypeError(
                f"{what} takes milliseconds since 1970 as an int, or EARLIEST, LATEST or "
                f"MAX_TIMESTAMP, not {time!r:.60}"
            )
        if not min(LATEST, MAX_TIMESTAMP) <= time <= TIMESTAMP_MAX:
            raise ValueError(
                f"{what}: {time} is no time: give milliseconds since 1970, or EARLIEST, LATEST or "
                "MAX_TIMESTAMP"
            )
        found[place_of(what, place)] = time
    return found


def partitions_by_topic(what: str, topics: object) -> dict[str, list[int]]:
    """Return the numbers of partitions by topic, checked."""
    if not isinstance(topics, Mapping):
        raise TypeError(f'{what} takes partitions such as {{"orders": [0, 1]}}, not {topics!r:.60}')
    found: dict[str, list[int]] = {}
    for topic, numbers in topics.items():
        if isinstance(numbers, str | bytes) or not isinstance(numbers, Iterable):
            raise TypeError(
                f'{what} takes partitions such as {{"orders": [0]}}, not {topics!r:.60}'
            )
        found[topic] = [place_of(what, (topic, number))[1] for number in numbers]
    return found
