"""Auditor: reads topics as a plain consumer and counts."""

from __future__ import annotations

from collections import Counter

from tarry.client import LATEST, Admin, Consumer, ConsumerRecord, NewTopic


def make_topic(bootstrap: str, name: str, partitions: int) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        outcome = admin.create_topics([NewTopic(name, partitions, 1)])[0]
        assert outcome.error is None, outcome.error


def records_of(bootstrap: str, topic: str) -> list[tuple[int, ConsumerRecord]]:
    """Return all records of a topic, each with its partition."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        partitions = admin.describe_topics([topic])[0].partitions
        wanted = {(topic, index): LATEST for index in partitions}
        ends = {place: found.offset for place, found in admin.offsets(wanted).items()}
    found: list[tuple[int, ConsumerRecord]] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(list(ends))
        while any(consumer.position(*place) < end for place, end in ends.items()):
            for group in consumer.poll(1.0):
                found.extend((group.partition, record) for record in group.records)
    return found


def values_of(bootstrap: str, topic: str) -> Counter[bytes | None]:
    """Return how often each value is in the topic."""
    return Counter(record.value for _, record in records_of(bootstrap, topic))
