"""Plan of a round: which offsets are to be archived next, as a pure function."""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.ids import TopicPartition
from tarry.spark.archive.manifest import ArchiveRefused, Manifest
from tarry.spark.histories.lines import NotedPlace
from tarry.spark.reading.cluster import FoundTopic
from tarry.spark.reading.plan import ReadRange


def check_topics(previous: Manifest | None, topics: Mapping[str, FoundTopic]) -> None:
    """Refuse a topic that is not the one that was archived under its name."""
    known = {} if previous is None else previous.topic_ids
    for name, topic in topics.items():
        archived = known.get(name, topic.topic_id)
        if archived != topic.topic_id:
            raise ArchiveRefused(
                f"the topic {name} was deleted and made anew: the archive holds the one with id "
                f"{archived}, the broker has {topic.topic_id}. Archive the new one to another path"
            )


def noted_ends(
    previous: Manifest | None, topics: Mapping[str, FoundTopic]
) -> dict[TopicPartition, NotedPlace]:
    """Return where each partition is archived up to, by the topics' ids now."""
    found: dict[TopicPartition, NotedPlace] = {}
    for name, topic in sorted(topics.items()):
        for partition in topic.partitions:
            noted = None if previous is None else previous.noted((name, partition))
            noted = noted or NotedPlace(0)
            found[name, partition] = noted._replace(topic_id=topic.topic_id)
    return found


def check_cuts(previous: Manifest | None, partings: Mapping[TopicPartition, int]) -> None:
    """Refuse to go on in a log that was cut and written anew below what is archived of it: an
    archive has one row of an offset."""
    told = "; ".join(
        f"the archive holds {topic} [{partition}] up to offset "
        f"{previous.ends[topic][partition]}, and the log was cut at offset {parting} and written "
        "anew from there on"
        for (topic, partition), parting in sorted(partings.items())
        if previous is not None
    )
    if told:
        raise ArchiveRefused(
            f"{told}: an unclean leader took over, or a broker lost what it had not flushed. The "
            "archive keeps what was lost. Archive the topic as it is now to another path"
        )


def passed_by(
    previous: Manifest | None, ends: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Return the partitions that are archived beyond these ends."""
    known = {} if previous is None else previous.ends
    return [
        (topic, partition)
        for (topic, partition), end in sorted(ends.items())
        if known.get(topic, {}).get(partition, end) > end
    ]


def next_ranges(
    previous: Manifest | None,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[ReadRange]:
    """Return what the next round reads: from where the last one ended to these ends.

    What the log does not have any more is left out; `lost_offsets` tells it.  Where nothing follows
    that, the range is empty: a round notes it, so that it is told once.
    """
    known = {} if previous is None else previous.ends
    ranges: list[ReadRange] = []
    for place in sorted(ends):
        topic, partition = place
        begin = known.get(topic, {}).get(partition, starts[place])
        if begin > ends[place]:
            raise ArchiveRefused(
                f"the archive holds {topic} [{partition}] up to offset {begin}, and the log ends "
                f"at {ends[place]}: it was truncated, or this is another cluster"
            )
        first = max(begin, starts[place])
        if first < ends[place]:
            ranges.append(ReadRange(topic, partition, first, ends[place]))
        elif begin < first:
            ranges.append(ReadRange(topic, partition, first, first))
    return ranges


def lost_offsets(
    previous: Manifest | None, starts: Mapping[TopicPartition, int]
) -> list[ReadRange]:
    """Return what should have been archived and is not in the log any more."""
    known = {} if previous is None else previous.ends
    return [
        ReadRange(topic, partition, known[topic][partition], start)
        for (topic, partition), start in sorted(starts.items())
        if known.get(topic, {}).get(partition, start) < start
    ]


def within_limit(ranges: list[ReadRange], records_max: int | None) -> list[ReadRange]:
    """Shorten ranges to so many records in all, shared by what each has left."""
    total = sum(one.size for one in ranges)
    if records_max is None or total <= records_max:
        return ranges
    shortened: list[ReadRange] = []
    for one in ranges:
        size = min(one.size, max(1, one.size * records_max // total))
        shortened.append(ReadRange(one.topic, one.partition, one.first, one.first + size))
    return shortened
