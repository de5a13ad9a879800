"""Job `rebalances`: why groups stood still, for how long, and what their members went through.

It reads the notes of groups in the event log, the same that `tarry groups why` tells.  Members are
known by the notes that name them; one that did nothing in the time of the log is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from tarry.broker.events.kinds import BrokerEvent, Event, GroupNoteEvent
from tarry.spark.events.decoding import Tally
from tarry.spark.events.group_story import (
    CUT_OFF,
    GroupRebalance,
    GroupStory,
    MemberTime,
)
from tarry.spark.events.reading import EventSource
from tarry.spark.events.tables import table_of

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of the table, and their types.
COLUMNS: Final = {
    "began": "time",
    "group": "string",
    "cause": "string",
    "reason": "string",
    "ended": "string",
    "stood_ms": "int64",
    "generation_before": "int64",
    "generation": "int64",
    "members": "int64",
}


@dataclass(frozen=True)
class RebalancesOptions:
    """Options of the job.  Without groups it takes all."""

    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupRow:
    """Sums of one group."""

    group: str
    rebalances: int
    # For how long its members stood still, in all and at most.
    stood_ms: int
    longest_ms: int
    # Members that went without a word.
    died: int
    left: int


@dataclass(frozen=True)
class RebalanceSums:
    """Result of the job.  Times are calendar ms."""

    groups: list[GroupRow]
    rebalances: list[GroupRebalance]
    members: list[MemberTime]
    tally: Tally = field(default_factory=Tally)

    def table(self) -> pa.Table:
        """Return the rebalances as a table of pyarrow, a row each."""
        rows = [{**asdict(one), "began": one.began_ms} for one in self.rebalances]
        return table_of(COLUMNS, rows)


def rebalances(source: EventSource, options: RebalancesOptions | None = None) -> RebalanceSums:
    """Gather the rebalances that an event log tells of; raises EventsMissing where none is."""
    tally = Tally()
    return gather_rebalances(source.events(tally), options or RebalancesOptions(), tally)


def gather_rebalances(
    events: Iterable[Event], options: RebalancesOptions, tally: Tally
) -> RebalanceSums:
    """Gather rebalances from events, whose tally is complete when they are at their end."""
    stories: dict[str, GroupStory] = {}
    for event in events:
        if isinstance(event, GroupNoteEvent):
            if not options.groups or event.group in options.groups:
                stories.setdefault(event.group, GroupStory(event.group)).add(event)
        elif isinstance(event, BrokerEvent) and event.what == "started":
            for story in stories.values():
                story.cut_off(event.broker)
    found = [stories[group] for group in sorted(stories)]
    for story in found:
        story.finish(tally.last_ms or 0)
    return RebalanceSums(
        groups=[_group_row(story) for story in found],
        rebalances=[one for story in found for one in story.rebalances],
        members=[one for story in found for one in story.members],
        tally=tally,
    )


def _group_row(story: GroupStory) -> GroupRow:
    stood = [one.stood_ms for one in story.rebalances if one.ended != CUT_OFF]
    ends = [one.end for one in story.members]
    return GroupRow(
        group=story.group,
        rebalances=len(story.rebalances),
        stood_ms=sum(stood),
        longest_ms=max(stood, default=0),
        died=ends.count("died"),
        left=ends.count("left"),
    )
