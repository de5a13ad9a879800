"""Advance: from where a stream is to where it may go, and the ranges between; pure.

A partition that a query has not read begins at offset 0, so that what retention took before it was
seen counts as lost, and a batch that is repeated reads what it read before.  A limit is shared from
the first record that is there, where going on without what is lost is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tarry.base.ids import TopicPartition
from tarry.spark.histories.lines import NotedPlace
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import FoundTopic
from tarry.spark.reading.limits import share_out
from tarry.spark.reading.loss import LostRange, cut_at
from tarry.spark.reading.offsets import QueryOffsets
from tarry.spark.reading.plan import ReadRange


def is_same_topic(one: str, other: str) -> bool:
    """Return true unless two ids tell two topics apart; "" is no id."""
    return not one or not other or one == other


def why_gone(topic: str, partition: int, topic_id: str, topics: Mapping[str, FoundTopic]) -> str:
    """Return why nothing can be read of a partition of this topic; empty if it is there."""
    found = topics.get(topic)
    if found is None:
        return "the topic was deleted"
    if not found.has(partition):
        return "the partition is gone"
    if not is_same_topic(topic_id, found.topic_id):
        return "the topic was deleted and made anew"
    return ""


def losses_of_topics(
    start: QueryOffsets, topics: Mapping[str, FoundTopic], choice: TopicChoice | None = None
) -> list[LostRange]:
    """Return what is gone with topics and partitions that were deleted or made anew, or that are
    not chosen any more."""
    lost: list[LostRange] = []
    for (name, partition), offset in start.places():
        reason = _why_not_read((name, partition), start, topics, choice)
        if reason:
            lost.append(LostRange(name, partition, offset, None, reason))
    return lost


def losses_of_ranges(
    ranges: Iterable[ReadRange],
    end: QueryOffsets,
    topics: Mapping[str, FoundTopic],
    choice: TopicChoice,
) -> list[LostRange]:
    """Return which ranges of a micro-batch that ends there are gone with their topics or
    partitions, or are not chosen any more."""
    lost: list[LostRange] = []
    for one in ranges:
        reason = _why_not_read((one.topic, one.partition), end, topics, choice)
        if reason:
            lost.append(LostRange(one.topic, one.partition, one.first, one.end, reason))
    return lost


def _why_not_read(
    place: TopicPartition,
    offsets: QueryOffsets,
    topics: Mapping[str, FoundTopic],
    choice: TopicChoice | None,
) -> str:
    """Return why nothing is read of a place of these offsets; empty if it is."""
    reason = why_gone(*place, offsets.topics[place[0]].topic_id, topics)
    if reason and choice is not None and not choice.takes(*place):
        return "the query does not read it any more"
    return reason


def losses_of_ends(
    start: QueryOffsets, topics: Mapping[str, FoundTopic], ends: Mapping[TopicPartition, int]
) -> list[LostRange]:
    """Return what is gone at the ends of logs that are shorter than what was read of them."""
    lost: list[LostRange] = []
    for (name, partition), offset in start.places():
        found = topics.get(name)
        end = ends.get((name, partition))
        if found is None or end is None or offset <= end:
            continue
        if is_same_topic(start.topics[name].topic_id, found.topic_id):
            reason = f"the log ends at {end}"
            lost.append(LostRange(name, partition, end, offset, reason))
    return lost


def noted_places(
    start: QueryOffsets, topics: Mapping[str, FoundTopic]
) -> dict[TopicPartition, NotedPlace]:
    """Return what is noted of each partition that is there; of one that is not read yet, its
    begin."""
    found: dict[TopicPartition, NotedPlace] = {}
    for name, topic in sorted(topics.items()):
        for partition in topic.partitions:
            noted = start.noted((name, partition))
            if noted is None or not is_same_topic(noted.topic_id, topic.topic_id):
                noted = NotedPlace(0)
            found[name, partition] = noted._replace(topic_id=topic.topic_id)
    return found


def losses_of_cuts(start: QueryOffsets, partings: Mapping[TopicPartition, int]) -> list[LostRange]:
    """Return what was read of logs that were cut and written anew below that."""
    lost: list[LostRange] = []
    for (name, partition), parting in sorted(partings.items()):
        offset = start.get((name, partition))
        reason = f"read before: {cut_at(parting)}"
        lost.append(LostRange(name, partition, parting, offset, reason, was_read=True))
    return lost


def advance(
    start: QueryOffsets,
    topics: Mapping[str, FoundTopic],
    ends: Mapping[TopicPartition, int],
    limit: int | None,
    partings: Mapping[TopicPartition, int] | None = None,
    starts: Mapping[TopicPartition, int] | None = None,
) -> QueryOffsets:
    """Return where the next micro-batch ends: at these ends, or after `limit` records.

    `partings` are where logs part from what was read of them, and where reading goes on after this
    micro-batch, which has nothing of them.  What lies before `starts` is gone and takes nothing of
    the limit.  A place that does not move keeps its line.
    """
    partings = partings or {}
    begins = begins_of(start, topics, ends, starts)
    left = {
        place: 0 if place in partings else max(0, ends[place] - begins[place]) for place in ends
    }
    shares = left if limit is None else share_out(left, limit, sum(begins.values()))
    reached = QueryOffsets()
    for place in sorted(ends):
        # A log that became shorter is followed to its end.
        offset = min(begins[place] + shares.get(place, 0), ends[place])
        offset = partings.get(place, offset)
        noted = start.noted(place)
        if offset > 0 or noted is not None:
            begin = begin_of(start, place, topics[place[0]].topic_id)
            is_same = noted is not None and noted.offset == offset == begin
            line = noted.line if noted is not None and is_same else ()
            reached.set(place, offset, topics[place[0]].topic_id, line)
    return reached


def begins_of(
    start: QueryOffsets,
    topics: Mapping[str, FoundTopic],
    ends: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, int]:
    """Return where partitions go on: not before the starts of their logs, as far as these are
    given."""
    starts = starts or {}
    return {
        place: max(begin_of(start, place, topics[place[0]].topic_id), starts.get(place, 0))
        for place in ends
    }


def begin_of(start: QueryOffsets, place: TopicPartition, topic_id: str) -> int:
    """Return where a partition of this topic goes on."""
    offset = start.get(place)
    if offset is None or not is_same_topic(start.topics[place[0]].topic_id, topic_id):
        return 0
    return offset


def ranges_between(start: QueryOffsets, end: QueryOffsets) -> list[ReadRange]:
    """Return what a micro-batch reads; nothing of a log that became shorter."""
    ranges: list[ReadRange] = []
    for place, offset in end.places():
        first = begin_of(start, place, end.topics[place[0]].topic_id)
        if offset > first:
            ranges.append(ReadRange(*place, first, offset))
    return ranges
