"""Compaction beside everything else that happens to its topic."""

from __future__ import annotations

from admin_user import TOPIC
from test_compacted_topics import (
    begin_compaction,
    kept,
    make_compact,
    someone_with,
    write_twice,
)


def test_compaction_ends_when_the_topic_is_to_keep_everything():
    operator = someone_with()
    write_twice(operator)
    begin_compaction(operator)

    operator.set(TOPIC, "orders", cleanup_policy="delete")
    make_compact(operator)

    assert kept(operator) == list(range(10))
    compactions = operator.hand.broker.topics["orders"].partitions[0].log.compaction
    assert not compactions.is_under_way


def test_a_topic_that_is_to_be_compacted_again_is():
    operator = someone_with()
    write_twice(operator)
    begin_compaction(operator)

    operator.set(TOPIC, "orders", cleanup_policy="delete")
    make_compact(operator)
    operator.set(TOPIC, "orders", cleanup_policy="compact,delete")
    make_compact(operator)

    assert kept(operator) == [1, 3, 5, 7, 8, 9]
