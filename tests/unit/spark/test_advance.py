"""Advance of a stream: a model of logs that grow, are cut, deleted and made anew."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tarry.base.ids import TopicPartition
from tarry.spark.histories.lines import NotedPlace
from tarry.spark.reading.advance import (
    advance,
    losses_of_cuts,
    losses_of_ends,
    losses_of_topics,
    noted_places,
    ranges_between,
)
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import FoundTopic
from tarry.spark.reading.offsets import QueryOffsets

TOPICS = ("orders", "payments")


def through_json(offsets: QueryOffsets) -> QueryOffsets:
    """Offsets as they come back from a checkpoint."""
    return QueryOffsets.from_json(json.loads(json.dumps(offsets.to_json())))


class StreamOfLogs(RuleBasedStateMachine):
    """Logs on one side, a query on the other; each record is read once while nothing is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = 0
        self.topics: dict[str, FoundTopic] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.at = QueryOffsets()
        # Offsets that the query has read of each log, by id.
        self.read: dict[tuple[str, TopicPartition], int] = {}

    @rule(name=st.sampled_from(TOPICS), count=st.integers(1, 3))
    def make_topic(self, name: str, count: int) -> None:
        """Make a topic, anew if it is there, or grow it."""
        self.ids += 1
        self.topics[name] = FoundTopic(f"id-{self.ids}", tuple(range(count)))
        for place in [place for place in self.ends if place[0] == name]:
            del self.ends[place]
        for partition in range(count):
            self.ends[name, partition] = 0

    @rule(name=st.sampled_from(TOPICS))
    def grow_topic(self, name: str) -> None:
        found = self.topics.get(name)
        if found is not None:
            count = len(found.partitions)
            self.topics[name] = FoundTopic(found.topic_id, (*found.partitions, count))
            self.ends[name, count] = 0

    @rule(name=st.sampled_from(TOPICS), partition=st.integers(0, 3), count=st.integers(1, 50))
    def append(self, name: str, partition: int, count: int) -> None:
        if (name, partition) in self.ends:
            self.ends[name, partition] += count

    @rule(limit=st.none() | st.integers(1, 60))
    def micro_batch(self, limit: int | None) -> None:
        gone = losses_of_topics(self.at, self.topics)
        assert not losses_of_ends(self.at, self.topics, self.ends)
        for lost in gone:
            # Only a topic that was made anew, or has fewer partitions now.
            kept = self.at.topics[lost.topic].topic_id
            assert kept != self.topics[lost.topic].topic_id
        reached = advance(through_json(self.at), self.topics, self.ends, limit)

        ranges = ranges_between(through_json(self.at), through_json(reached))

        for one in ranges:
            place = one.topic, one.partition
            log = self.topics[one.topic].topic_id, place
            assert self.read.get(log, 0) == one.first
            assert one.end <= self.ends[place]
            self.read[log] = one.end
        taken = sum(one.size for one in ranges)
        left = sum(
            end - self.read.get((self.topics[place[0]].topic_id, place), 0)
            for place, end in self.ends.items()
        )
        assert left == 0 if limit is None else taken == limit or left == 0
        self.at = reached

    @invariant()
    def never_behind_an_end(self) -> None:
        for place, offset in self.at.places():
            found = self.topics[place[0]]
            if found.topic_id == self.at.topics[place[0]].topic_id:
                assert offset <= self.ends[place]


TestStreamOfLogs = StreamOfLogs.TestCase
TestStreamOfLogs.settings = settings(max_examples=30, stateful_step_count=30)


@given(
    st.dictionaries(
        st.sampled_from(TOPICS),
        st.dictionaries(st.integers(0, 11_000), st.integers(0, 2**62), min_size=1),
    )
)
def test_equal_offsets_are_equal_texts(by_topic: dict[str, dict[int, int]]) -> None:
    one, other = QueryOffsets(), QueryOffsets()
    places = [(name, index) for name, offsets in by_topic.items() for index in offsets]
    for name, index in places:
        one.set((name, index), by_topic[name][index], f"id of {name}")
    for name, index in reversed(places):
        other.set((name, index), by_topic[name][index], f"id of {name}")

    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert through_json(one) == one


def test_a_shorter_log_is_a_loss_and_is_followed_to_its_end() -> None:
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 10}})
    topics, ends = {"orders": FoundTopic("a", (0,))}, {("orders", 0): 7}

    lost = losses_of_ends(start, topics, ends)

    assert [str(one) for one in lost] == ["orders [0] from offset 7 to 10 (the log ends at 7)"]
    assert advance(start, topics, ends, None).to_json() == {"orders": {"id": "a", "0": 7}}
    assert ranges_between(start, advance(start, topics, ends, None)) == []


def test_a_topic_made_anew_is_a_loss_and_is_read_from_its_start() -> None:
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 10}})
    topics, ends = {"orders": FoundTopic("b", (0,))}, {("orders", 0): 12}

    lost = losses_of_topics(start, topics)
    reached = advance(start, topics, ends, None)

    assert [str(one) for one in lost] == [
        "orders [0] from offset 10 on (the topic was deleted and made anew)"
    ]
    assert [(one.first, one.end) for one in ranges_between(start, reached)] == [(0, 12)]


def test_a_deleted_topic_is_a_loss_and_is_forgotten() -> None:
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 10}, "payments": {"0": 3, "1": 4}})
    topics, ends = {"payments": FoundTopic("", (0,))}, {("payments", 0): 5}

    lost = losses_of_topics(start, topics)

    assert [str(one) for one in lost] == [
        "orders [0] from offset 10 on (the topic was deleted)",
        "payments [1] from offset 4 on (the partition is gone)",
    ]
    assert advance(start, topics, ends, None).to_json() == {"payments": {"0": 5}}


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (TopicChoice(names=("orders", "payments")), "the topic was deleted"),
        (TopicChoice(pattern="^ord"), "the topic was deleted"),
        (TopicChoice(assigned={"orders": (0,)}), "the topic was deleted"),
        (TopicChoice(names=("payments",)), "the query does not read it any more"),
        (TopicChoice(pattern="^pay"), "the query does not read it any more"),
        (TopicChoice(assigned={"orders": (1,)}), "the query does not read it any more"),
        (TopicChoice(assigned={"payments": (0,)}), "the query does not read it any more"),
    ],
)
def test_a_topic_that_is_not_chosen_any_more_is_not_called_deleted(
    choice: TopicChoice, reason: str
) -> None:
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 10}})

    (lost,) = losses_of_topics(start, {}, choice)

    assert lost.reason == reason


def test_a_log_that_was_cut_is_gone_back_in_and_the_next_micro_batch_reads_on() -> None:
    epochs = {"0": [[0, 0], [2, 6]], "1": [[0, 0]]}
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 10, "1": 4, "epochs": epochs}})
    topics = {"orders": FoundTopic("a", (0, 1))}
    ends = {("orders", 0): 20, ("orders", 1): 9}
    partings = {("orders", 0): 8}

    lost = losses_of_cuts(start, partings)
    moved = advance(start, topics, ends, 3, partings)
    moved.note({("orders", 0): ((0, 0), (2, 6)), ("orders", 1): ((0, 0),)})
    parted = through_json(moved)
    reached = through_json(advance(parted, topics, ends, None))

    assert [(str(one), one.was_read) for one in lost] == [
        (
            "orders [0] from offset 8 to 10 (read before: the log was cut at offset 8, and what "
            "follows there was written anew)",
            True,
        )
    ]
    assert [(one.partition, one.first, one.end) for one in ranges_between(start, parted)] == [
        (1, 4, 7)
    ]
    assert parted.to_json()["orders"]["epochs"] == {"0": [[0, 0], [2, 6]], "1": [[0, 0]]}
    assert [(one.partition, one.first, one.end) for one in ranges_between(parted, reached)] == [
        (0, 8, 20),
        (1, 7, 9),
    ]
    # The leaders' answers about the new places are not known here.
    assert "epochs" not in reached.to_json()["orders"]
    assert reached.bare_places() == {("orders", 0): 20, ("orders", 1): 9}
    assert advance(reached, topics, ends, None) == reached
    assert advance(start, topics, {("orders", 1): 4}, None).to_json()["orders"] == {
        "id": "a",
        "1": 4,
        "epochs": {"1": [[0, 0]]},
    }


def test_places_are_noted_by_the_topic_that_is_there() -> None:
    kept = {"orders": {"id": "a", "0": 10, "1": 4, "epochs": {"0": [[0, 0]], "7": [[0, 0]]}}}
    start = QueryOffsets.from_json(kept)

    same = noted_places(start, {"orders": FoundTopic("a", (0, 1, 2))})
    anew = noted_places(start, {"orders": FoundTopic("b", (0,))})

    assert same == {
        ("orders", 0): NotedPlace(10, ((0, 0),), "a"),
        ("orders", 1): NotedPlace(4, (), "a"),
        ("orders", 2): NotedPlace(0, (), "a"),
    }
    assert anew == {("orders", 0): NotedPlace(0, (), "b")}


def test_what_is_known_of_a_log_does_not_move_a_query() -> None:
    bare = QueryOffsets.from_json({"orders": {"id": "a", "0": 10}})
    known = QueryOffsets.from_json({"orders": {"id": "a", "0": 10, "epochs": {"0": [[0, 0]]}}})

    assert bare.is_at(known)
    assert known.is_at(bare)
    assert not bare.is_at(QueryOffsets.from_json({"orders": {"id": "b", "0": 10}}))
    assert not bare.is_at(QueryOffsets.from_json({"orders": {"id": "a", "0": 11}}))
    assert not bare.is_at(QueryOffsets.from_json({"orders": {"id": "a", "0": 10, "1": 0}}))


@pytest.mark.parametrize("kept", [{}, {"payments": {"id": "p", "0": 400_000}}])
def test_a_limited_micro_batch_begins_at_the_first_record_that_is_there(
    kept: dict[str, dict[str, object]],
) -> None:
    """Offsets that are gone take no share: others would wait for what nobody can read."""
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 600}, **kept})
    topics = {"orders": FoundTopic("a", (0,)), "payments": FoundTopic("p", (0,))}
    ends = {("orders", 0): 1_600, ("payments", 0): 1_001_000}
    starts = {("orders", 0): 0, ("payments", 0): 1_000_000}

    reached = advance(start, topics, ends, 200, starts=starts)

    assert dict(reached.places()) == {("orders", 0): 700, ("payments", 0): 1_000_100}


def test_a_log_whose_records_are_all_gone_is_followed_to_its_end() -> None:
    start = QueryOffsets.from_json({"orders": {"id": "a", "0": 600, "1": 5}})
    topics = {"orders": FoundTopic("a", (0, 1))}
    ends = {("orders", 0): 1_600, ("orders", 1): 10}
    # The second one was found later than the end, and retention was there in between.
    starts = {("orders", 0): 1_600, ("orders", 1): 12}

    assert dict(advance(start, topics, ends, 3, starts=starts).places()) == ends
