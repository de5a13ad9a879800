"""The runtime of coordinators, with a state that has nothing to do with groups: counters."""

from __future__ import annotations

import pytest
from tests.support.broker.counter_coordinator import (
    COUNTER,
    COUNTERS,
    TIMEOUT_MS,
    CounterBroker,
    CounterShard,
)
from tests.support.broker.group_user import GroupUser, pass_time_without_disk

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

LOADING = errors.COORDINATOR_LOAD_IN_PROGRESS


def find(hand: CounterBroker) -> FindCoordinatorResponse:
    """Ask who coordinates the counters; their topic is made for the first who asks."""
    request = FindCoordinatorRequest(key="clicks", key_type=COUNTER)
    answer = hand.connect().ask(api_keys.FIND_COORDINATOR, 3, request)
    assert isinstance(answer, FindCoordinatorResponse)
    return answer


@pytest.fixture
def hand() -> CounterBroker:
    made = CounterBroker({"offsets.topic.num.partitions": "1"})
    assert find(made).error_code == errors.NONE
    return made


@pytest.fixture
def shard(hand: CounterBroker) -> CounterShard:
    return hand.counters.shards[0]


def test_whoever_looks_for_a_coordinator_finds_it_by_its_key_type(hand: CounterBroker) -> None:
    found = find(hand)

    assert (found.node_id, found.port) == (hand.broker.broker_id, 9092)
    assert sorted(hand.counters.shards) == [0, 1]
    assert len(hand.broker.topics[COUNTERS].partitions) == 2


def test_an_addition_counts_and_is_answered_when_it_is_durable(
    hand: CounterBroker, shard: CounterShard
) -> None:
    first, second = shard.add("clicks", 2), shard.add("clicks", 3)
    hand.turn()
    before = (dict(shard.totals), [*first.codes, *second.codes])

    hand.settle()

    assert before == ({}, [])
    assert (shard.totals, shard.offsets) == ({"clicks": 5}, [0, 1])
    assert (first.codes, second.codes) == ([errors.NONE], [errors.NONE])


def test_an_addition_after_the_flush_began_waits_for_the_next(
    hand: CounterBroker, shard: CounterShard
) -> None:
    first = shard.add("clicks", 2)
    hand.turn()
    second = shard.add("clicks", 3)
    hand.turn(*hand.disk.complete_flushes())
    early = (dict(shard.totals), list(first.codes), list(second.codes))

    hand.settle()

    assert early == ({"clicks": 2}, [errors.NONE], [])
    assert (shard.totals, second.codes) == ({"clicks": 5}, [errors.NONE])


def test_what_is_applied_in_life_is_what_is_loaded_after_a_crash(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 2, 3)
    hand.settle()
    shard.add("visits", 1)
    hand.settle()
    hand.crash()
    loading = [each.runtime.error_code for each in hand.counters.shards.values()]

    hand.settle()

    again = hand.counters.shards[0]
    assert loading == [LOADING, errors.NONE]
    assert again.runtime.error_code == errors.NONE
    assert (again.totals, again.offsets) == (shard.totals, shard.offsets)


def test_what_the_disk_refuses_is_taken_back_newest_first_and_not_loaded(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 1)
    hand.settle()
    hand.disk.fail_writes(1, f"{COUNTERS}-0")

    asked = [shard.add("clicks", amount) for amount in (10, 20, 30)]
    hand.settle()
    waiting = hand.counters.context.recorded.delayed
    then = shard.add("clicks", 2)
    hand.settle()
    hand.crash()
    hand.settle()

    assert shard.taken_back == [30, 20, 10]
    assert waiting == 0
    assert [each.codes for each in asked] == [[errors.KAFKA_STORAGE_ERROR]] * 3
    assert then.codes == [errors.NONE]
    assert shard.totals == hand.counters.shards[0].totals == {"clicks": 3}


def test_a_shard_whose_disk_refuses_does_not_hold_up_another(
    hand: CounterBroker, shard: CounterShard
) -> None:
    hand.disk.fail_writes(1, f"{COUNTERS}-0")

    refused, taken = shard.add("clicks", 1), hand.counters.shards[1].add("visits", 1)
    hand.settle()

    assert (refused.codes, taken.codes) == ([errors.KAFKA_STORAGE_ERROR], [errors.NONE])


def test_a_shard_that_cannot_be_read_is_not_available_and_another_is(
    hand: CounterBroker, shard: CounterShard, caplog: pytest.LogCaptureFixture
) -> None:
    shard.add("clicks", 1)
    hand.counters.shards[1].add("visits", 1)
    hand.settle()
    hand.stop()
    hand.start()
    hand.disk.fail_reads(1, f"{COUNTERS}-0")

    hand.settle()

    codes = [each.runtime.error_code for each in hand.counters.shards.values()]
    assert codes == [errors.COORDINATOR_NOT_AVAILABLE, errors.NONE]
    assert "the counters of counters-0 cannot be loaded" in caplog.text


def test_a_log_is_loaded_in_steps_between_which_the_broker_works(
    hand: CounterBroker, shard: CounterShard
) -> None:
    for number in range(40):
        shard.add(f"{number}" * 20_000, 1)
        hand.settle()
    hand.crash()
    codes = []

    while hand.broker.has_work_left():
        hand.turn()
        codes.append(hand.counters.shards[0].runtime.error_code)

    assert codes.count(LOADING) > 2
    assert codes[-1] == errors.NONE
    assert len(hand.counters.shards[0].totals) == 40


def test_an_addition_that_is_not_durable_in_time_is_answered_so_and_counts_later(
    hand: CounterBroker, shard: CounterShard
) -> None:
    asked = shard.add("clicks", 1)
    hand.turn()
    waiting = hand.counters.context.recorded.delayed

    pass_time_without_disk(hand, TIMEOUT_MS)
    timed_out = list(asked.codes)
    hand.settle()

    assert (waiting, timed_out) == (1, [errors.COORDINATOR_NOT_AVAILABLE])
    assert asked.codes == timed_out
    assert shard.totals == {"clicks": 1}
    assert (hand.counters.waiting, hand.counters.context.recorded.watched) == (0, 0)


def test_what_does_not_fit_into_a_batch_is_refused_or_split(
    hand: CounterBroker, shard: CounterShard
) -> None:
    name = "n" * (hand.partition().config.max_message_bytes // 3)

    refused = shard.add(name, 1, 1, 1)
    split = shard.add(name, 1, 1, 1, can_be_split=True)
    hand.settle()

    assert (refused.codes, split.codes) == ([errors.MESSAGE_TOO_LARGE], [errors.NONE])
    assert (shard.totals, shard.offsets) == ({name: 3}, [0, 1, 2])


def test_a_control_batch_passes_the_queue_and_the_loader(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 1)
    shard.seal()
    shard.add("clicks", 1)
    hand.turn()
    early = shard.is_sealed
    hand.settle()
    hand.crash()
    hand.settle()

    again = hand.counters.shards[0]
    assert (early, shard.is_sealed, again.is_sealed) == (False, True, True)
    assert again.totals == {"clicks": 2}
    assert shard.offsets == again.offsets == [0, 2]


# --- A partition goes to another broker, and comes back.


def test_an_unloaded_shard_knows_nothing_and_is_not_found(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 1)
    hand.settle()
    shard.add("clicks", 1)
    hand.turn()

    hand.counters.unload(hand.partition())

    assert shard.totals == {}
    assert hand.counters.context.recorded.delayed == 0
    assert shard.runtime.error_code == errors.NOT_COORDINATOR
    assert sorted(hand.counters.shards) == [1]
    found = [hand.counters.find(name)[1] for name in ("clicks", "visits", "a", "b")]
    assert errors.NOT_COORDINATOR in found


def test_what_is_loaded_again_has_what_was_under_way_if_the_disk_takes_it(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 1)
    hand.settle()
    shard.add("clicks", 1)
    hand.turn()
    hand.counters.unload(hand.partition())
    hand.counters.load(hand.partition())
    again = hand.counters.shards[0]
    hand.turn()
    early = again.runtime.error_code

    hand.settle()

    assert (early, again.runtime.error_code) == (LOADING, errors.NONE)
    assert (again.totals, again.offsets) == ({"clicks": 2}, [0, 1])
    assert shard.offsets == [0]


def test_what_is_loaded_again_lacks_what_was_under_way_if_the_disk_refuses_it(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 1)
    hand.settle()
    hand.disk.fail_writes(1, f"{COUNTERS}-0")
    shard.add("clicks", 1)
    hand.counters.unload(hand.partition())
    hand.counters.load(hand.partition())

    hand.settle()

    again = hand.counters.shards[0]
    assert (again.runtime.error_code, again.totals) == (errors.NONE, {"clicks": 1})
    assert shard.taken_back == []


def test_a_shard_that_is_given_up_while_it_is_loaded_stays_given_up(
    hand: CounterBroker, shard: CounterShard
) -> None:
    shard.add("clicks", 1)
    hand.settle()
    hand.crash()
    loading = hand.counters.shards[0]

    hand.counters.unload(hand.partition())
    hand.settle()

    assert loading.runtime.error_code == errors.NOT_COORDINATOR
    assert loading.totals == {}


def test_with_its_topic_a_coordinator_loses_its_shards_and_no_other_does(
    hand: CounterBroker, shard: CounterShard
) -> None:
    user = GroupUser(hand)
    assert user.find().error_code == errors.NONE
    shard.add("clicks", 1)
    hand.settle()

    user.send_delete(COUNTERS)
    hand.settle()

    assert hand.counters.shards == {}
    assert shard.runtime.error_code == errors.NOT_COORDINATOR
    assert sorted(hand.broker.groups.shards) == [0]
    assert find(hand).error_code == errors.NONE
    assert hand.counters.shards[0].totals == {}
