"""Topics of 10,000 partitions: what is done for each of them does not grow with their number.

Seconds say little on a busy machine, so calls are counted: of functions, and of comparisons of two
partitions.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from tarry.client.core.publisher.look_back import SeenRange
from tarry.client.core.publisher.send import ACCEPTED, SendOutcome
from tarry.spark.reading.advance import (
    advance,
    losses_of_cuts,
    losses_of_ends,
    losses_of_ranges,
    losses_of_topics,
    noted_places,
    ranges_between,
)
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import FoundTopic
from tarry.spark.reading.offsets import QueryOffsets
from tarry.spark.reading.plan import TaskLimits, plan_tasks
from tarry.spark.writing import effects
from tarry.spark.writing.effects import LookedBack, SentRound
from tarry.spark.writing.plan import (
    Freezing,
    Noted,
    Plan,
    PlannedBatch,
    PlannedFile,
    TaskOutput,
    TaskPart,
    amended,
    decode_plan,
    encode_plan,
    make_plan,
    places_of,
)
from tarry.spark.writing.steps import SinkSteps

FEW = 1_000
MANY = 10_000
TOPIC = "wide"


class Number(int):
    """Number of a partition whose comparisons are calls of a function."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True

    def __lt__(self, other: int) -> bool:
        return int.__lt__(self, other)


class TooManyCalls(Exception):
    pass


def calls_of(work: Callable[[int], None], count: int, most: float = math.inf) -> int:
    """How many functions of Python are called for so many partitions, `most` at most."""
    calls = 0

    def count_call(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"
        if calls > most:
            raise TooManyCalls(f"{calls:,} for {count:,} partitions")

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        work(count)
    finally:
        sys.setprofile(before)
    return calls


def freeze(count: int) -> Plan:
    parts = tuple(
        TaskPart(TOPIC, number, (PlannedBatch(0, 9 * number, 9, 1),) * 2) for number in range(count)
    )
    outputs = (TaskOutput(PlannedFile("f", 9 * count, 1), parts),) * 2
    noted = Noted(dict.fromkeys(places_of(outputs), 5), {TOPIC: "id"}, "cluster")
    before = make_plan(Freezing(0, "q", outputs, 1_000, (7, 0)), noted)
    return make_plan(Freezing(1, "q", outputs, 1_000, (7, 0), before, before), noted)


def publish(plan: Plan) -> None:
    """Carry a plan out: nothing of it is in the logs yet, and each batch is taken."""
    steps = SinkSteps("q", 24 * 3_600_000).publish(plan, is_fresh=False)
    answer: object = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration:
            return
        if isinstance(effect, effects.Now):
            answer = 2_000
        elif isinstance(effect, effects.LookBack):
            nothing = LookedBack(SeenRange(5, (), False), 0, 5)
            answer = dict.fromkeys(effect.offsets, nothing)
        else:
            assert isinstance(effect, effects.SendRound)
            answer = SentRound(dict.fromkeys(effect.ordinals, SendOutcome(ACCEPTED)))


def sink(count: int) -> None:
    plan = freeze(count)
    assert len(plan.shares) == plan.record_count // 4 == count
    assert decode_plan(encode_plan(plan), "plan") == plan
    publish(plan)
    places = {share.place: 1 for share in plan.shares}
    changed = amended(plan, (8, 0), places, Noted(dict.fromkeys(places, 5), {}, "cluster"))
    publish(changed)
    assert changed.record_count == 3 * count


def read(count: int) -> None:
    numbers = [Number(number) for number in range(count)]
    topics = {TOPIC: FoundTopic("id", tuple(numbers))}
    choice = TopicChoice(names=(TOPIC,))
    start = QueryOffsets()
    for number in numbers:
        start.set((TOPIC, number), 3, "id")
    assert len(start.bare_places()) == count
    start.note({(TOPIC, number): ((0, 0),) for number in numbers})
    kept = QueryOffsets.from_json(json.loads(json.dumps(start.to_json())))
    assert kept.is_at(start)
    assert kept.bare_places() == {}
    assert len(noted_places(start, topics)) == count

    ends = {(TOPIC, number): 5 for number in numbers}
    end = advance(start, topics, ends, None)
    part = advance(start, topics, ends, count + 1)
    ranges = ranges_between(start, end)
    tasks = plan_tasks(ranges, TaskLimits(cores=4, partition_records_max=1_000))

    assert sum(one.size for one in ranges) == 2 * count
    assert sum(one.size for task in tasks for one in task) == 2 * count
    assert sum(one.size for one in ranges_between(start, part)) == count + 1
    assert losses_of_topics(start, topics, choice) == []
    assert losses_of_ranges(ranges, end, topics, choice) == []
    assert losses_of_ends(start, topics, ends) == []
    assert len(losses_of_cuts(start, dict.fromkeys(ends, 1))) == count


@pytest.mark.slow
@pytest.mark.parametrize("work", [sink, read])
def test_ten_times_the_partitions_are_ten_times_the_work(work: Callable[[int], None]) -> None:
    few = calls_of(work, FEW)

    # Sorting has a logarithm more.
    many = calls_of(work, MANY, 14 * few)

    assert many > few
