"""Bounds become offsets: the ranges that a batch reads, and where a stream begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from tarry.base.ids import TopicPartition
from tarry.spark.options import OptionRefused
from tarry.spark.reading.bounds import (
    AT_EARLIEST,
    AT_LATEST,
    AT_OFFSETS,
    AT_TIME,
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    Bound,
    TopicChoice,
)
from tarry.spark.reading.cluster import FoundTopic, TopicLogs

if TYPE_CHECKING:
    from tarry.spark.reading.read_options import ReadOptions

# A broker that has just started may not know a topic, a partition or a topic's new id for a moment:
# what is gone is asked for so often again, after a pause.  Offsets that are forgotten would be read
# twice.
GONE_ATTEMPTS: Final = 3
GONE_SECONDS = 0.5

Offsets = dict[TopicPartition, int]
Topics = dict[str, FoundTopic]


def places_of(topics: Topics) -> list[TopicPartition]:
    """Return all partitions of these topics, in order."""
    return [(name, one) for name, topic in sorted(topics.items()) for one in topic.partitions]


def find_topics(
    cluster: TopicLogs, choice: TopicChoice, is_one_gone: Callable[[Topics], bool]
) -> Topics:
    """Find the topics; ask again before one counts as gone."""
    for _ in range(GONE_ATTEMPTS):
        topics = cluster.topics(choice)
        if not is_one_gone(topics):
            return topics
        time.sleep(GONE_SECONDS)
    return cluster.topics(choice)


def find_chosen(cluster: TopicLogs, choice: TopicChoice) -> Topics:
    """Find all that is chosen.  Raises OptionRefused for what is not there."""
    topics = find_topics(cluster, choice, lambda found: bool(what_is_missing(choice, found)))
    sentence = what_is_missing(choice, topics)
    if sentence:
        raise OptionRefused(sentence)
    return topics


def what_is_missing(
    choice: TopicChoice, topics: Mapping[str, FoundTopic], begun: Iterable[TopicPartition] = ()
) -> str:
    """Return a sentence that names what is chosen and is neither there nor begun; empty if there
    is nothing such."""
    places = dict.fromkeys(begun)
    known = {*topics, *(name for name, _ in places)}
    names = choice.names or tuple(choice.assigned)
    missing = [name for name in names if name not in known]
    if missing:
        return f"the broker has no topic {', '.join(missing)}: make it, or read other topics"
    for name, wanted in choice.assigned.items():
        if name not in topics:
            # What was begun of it is lost, which is told as a loss.
            continue
        there = topics[name].partitions
        gone = [str(one) for one in wanted if one not in there and (name, one) not in places]
        if gone:
            return f"the topic {name} has no partition {', '.join(gone)}: read others of it"
    return ""


def resolve_start(
    options: ReadOptions, places: list[TopicPartition], cluster: TopicLogs
) -> Offsets:
    """Return the first offset of each partition."""
    bound = options.starting
    if bound.kind == AT_EARLIEST:
        return cluster.starts(places)
    if bound.kind == AT_LATEST:
        return cluster.ends(places)
    if bound.kind == AT_OFFSETS:
        return _given_offsets("startingOffsets", bound, places, cluster)
    times = _times("starting", bound, places)
    found = cluster.at_times(times)
    late = [place for place, offset in found.items() if offset < 0]
    if late and not options.is_late_start_latest:
        told = ", ".join(f"{topic} [{partition}]" for topic, partition in late[:10])
        raise OptionRefused(
            f"no record is as young as the start for {told}: give an earlier time, or "
            "startingOffsetsByTimestampStrategy=latest to begin at the end there"
        )
    return {**found, **(cluster.ends(late) if late else {})}


def resolve_end(bound: Bound, places: list[TopicPartition], cluster: TopicLogs) -> Offsets:
    """Return the offset behind the last one of each partition."""
    if bound.kind == AT_LATEST:
        return cluster.ends(places)
    if bound.kind == AT_OFFSETS:
        return _given_offsets("endingOffsets", bound, places, cluster)
    found = cluster.at_times(_times("ending", bound, places))
    late = [place for place, offset in found.items() if offset < 0]
    return {**found, **(cluster.ends(late) if late else {})}


def _times(side: str, bound: Bound, places: list[TopicPartition]) -> Offsets:
    if bound.kind == AT_TIME:
        return dict.fromkeys(places, bound.time_ms)
    _check_all_named(f"{side}OffsetsByTimestamp", bound.numbers, places)
    return {place: bound.numbers[place] for place in places}


def _given_offsets(
    name: str, bound: Bound, places: list[TopicPartition], cluster: TopicLogs
) -> Offsets:
    _check_all_named(name, bound.numbers, places)
    earliest = [place for place in places if bound.numbers[place] == EARLIEST_OFFSET]
    latest = [place for place in places if bound.numbers[place] == LATEST_OFFSET]
    return {
        **{place: bound.numbers[place] for place in places},
        **(cluster.starts(earliest) if earliest else {}),
        **(cluster.ends(latest) if latest else {}),
    }


def _check_all_named(
    name: str, named: Iterable[TopicPartition], places: list[TopicPartition]
) -> None:
    # By key: there may be 10,000 of each.
    given, read = dict.fromkeys(sorted(named)), dict.fromkeys(places)
    missing = [place for place in places if place not in given]
    foreign = [place for place in given if place not in read]
    for wrong, words in ((missing, "leaves out"), (foreign, "has")):
        if wrong:
            told = ", ".join(f"{topic} [{partition}]" for topic, partition in wrong[:10])
            raise OptionRefused(
                f"{name} {words} {told}: it takes every partition that is read and no other; -2 "
                "stands for the earliest offset and -1 for the latest"
            )
