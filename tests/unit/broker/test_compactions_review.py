"""Compaction beside everything else that happens to its topic."""

from __future__ import annotations

from tests.support.broker.admin_user import TOPIC
from tests.support.broker.broker_user import ORDERS
from tests.unit.broker.test_compacted_topics import (
    DAY_MS,
    begin_compaction,
    kept,
    keyed,
    make_compact,
    pass_time,
    someone_with,
    write_twice,
)

from tarry.broker.duties.compactions import CLOCK_DISTRUST_MS


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


def test_a_late_removal_of_old_segments_leaves_a_topic_made_again_alone():
    """The thread that removes may be busy with something large for minutes."""
    operator = someone_with(cleanup_policy="delete", retention_ms="2000")
    disk = operator.hand.disk
    write_twice(operator)
    disk.defers_removals = True
    pass_time(operator, 20_000)
    operator.delete()
    operator.hand.settle()
    operator.create(ORDERS)
    for number in range(3):
        operator.produce(keyed((b"k", b"%d" % number)))

    assert disk.complete_removals() > 10
    operator.hand.crash()
    operator.client = operator.hand.connect()

    assert kept(operator) == [0, 1, 2]


def test_a_clock_that_is_wrong_for_a_minute_takes_no_tombstone():
    operator = someone_with(delete_retention_ms="60000")
    operator.produce(keyed((b"deleted", b"value")))
    operator.produce(keyed((b"deleted", None), time=10))
    write_twice(operator, time=100)
    make_compact(operator)
    before = kept(operator)

    operator.hand.now_wall_ms += 2 * DAY_MS
    write_twice(operator, time=2 * DAY_MS)
    pass_time(operator, 30_000)
    operator.hand.now_wall_ms -= 2 * DAY_MS
    pass_time(operator, 10_000)
    during = kept(operator)
    pass_time(operator, CLOCK_DISTRUST_MS)
    write_twice(operator, time=60 * 60_000)
    make_compact(operator)

    assert before[0] == during[0] == 1
    assert kept(operator)[0] > 1
