"""Plan of `tarry groups reset-offsets`: the new offset of each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tarry.base.ids import TopicPartition
from tarry.cli.guesses import unknown_topic
from tarry.cli.places import OFFSET, TIME, Place
from tarry.cli.running import fail
from tarry.cli.tables import complain

if TYPE_CHECKING:
    from tarry.client import Admin


# Kinds of places that only a reset knows: a shift from the committed offset, and the offset itself.
SHIFT: Final = "shift"
CURRENT: Final = "current"


class OffsetMove(NamedTuple):
    """Move of one partition from its committed offset, None if there is none, to another one."""

    place: TopicPartition
    before: int | None
    after: int


class Reset:
    """Reset of one group: its offsets are looked up, planned and committed."""

    def __init__(self, admin: Admin, name: str, timeout: float) -> None:
        self.admin = admin
        self.name = name
        self.timeout = timeout

    def plan(self, wanted: dict[str, list[int] | None], target: Place) -> list[OffsetMove]:
        """Plan each partition; all that are committed if no topics are wanted."""
        committed = committed_offsets(self.admin, self.name, self.timeout)
        places = self._places(wanted, committed)
        return self._moves(committed, dict.fromkeys(places, target))

    def plan_offsets(
        self, offsets: Mapping[TopicPartition, int], wanted: dict[str, list[int] | None]
    ) -> list[OffsetMove]:
        """Single offsets for single partitions, of the wanted topics (none: all)."""
        committed = committed_offsets(self.admin, self.name, self.timeout)
        topics: dict[str, list[int] | None] = {}
        for topic, index in sorted(offsets):
            known = topics.setdefault(topic, [])
            assert known is not None
            known.append(index)
        self._check_there(topics)
        places = sorted(offsets)
        if wanted:
            places = [at for at in chosen(wanted, places) if at in offsets]
        if not places:
            fail(f"none of the given offsets is of {', '.join(wanted)}")
        return self._moves(committed, {at: Place(OFFSET, offsets[at]) for at in places})

    def _moves(
        self, committed: dict[TopicPartition, int], targets: Mapping[TopicPartition, Place]
    ) -> list[OffsetMove]:
        from tarry.cli.group_look import offsets_at
        from tarry.client import EARLIEST, LATEST

        begins = offsets_at(self.admin, dict.fromkeys(targets, EARLIEST), self.timeout)
        ends = offsets_at(self.admin, dict.fromkeys(targets, LATEST), self.timeout)
        times = {at: target.number for at, target in targets.items() if target.kind == TIME}
        found = offsets_at(self.admin, times, self.timeout) if times else {}
        moves: list[OffsetMove] = []
        for at, target in targets.items():
            if at not in begins or at not in ends:
                fail(f"the offsets of {at[0]} [{at[1]}] are not known: it may be without a leader")
            before = committed.get(at)
            if target.kind == SHIFT:
                wish = _shifted(at, before, target.number)
            elif target.kind == CURRENT:
                wish = ends[at] if before is None else before
            else:
                wish = target.offset(begins[at], ends[at], found.get(at, -1))
            after = min(max(wish, begins[at]), ends[at])
            if after != wish:
                span = f"offsets {begins[at]} to {ends[at]}, not {wish}"
                complain(f"{at[0]} [{at[1]}] has {span}: taking {after}")
            moves.append(OffsetMove(at, before, after))
        return moves

    def _places(
        self, wanted: dict[str, list[int] | None], committed: dict[TopicPartition, int]
    ) -> list[TopicPartition]:
        if not wanted:
            if not committed:
                fail(f"group {self.name!r} has committed nothing; name a topic with --topic")
            return sorted(committed)
        return chosen(wanted, self._check_there(wanted))

    def _check_there(self, wanted: Mapping[str, list[int] | None]) -> list[TopicPartition]:
        """Return the partitions of these topics; fails for one that is not there."""
        topics = self.admin.find_topics(wanted, self.timeout)
        for topic, partitions in wanted.items():
            if topic not in topics:
                names = [one.name for one in self.admin.list_topics(self.timeout)]
                fail(unknown_topic(topic, names))
            for index in partitions or ():
                if index not in topics[topic].partitions:
                    last = max(topics[topic].partitions)
                    fail(f"topic {topic!r} has partitions 0 to {last}, not {index}")
        return [(name, index) for name, one in topics.items() for index in one.partitions]

    def execute(self, moves: list[OffsetMove]) -> dict[TopicPartition, str]:
        """Commit the moves; return a sentence for each partition whose commit was refused."""
        offsets = {move.place: move.after for move in moves}
        outcomes = self.admin.commit_group_offsets(self.name, offsets, self.timeout, outcomes=True)
        return {place: str(error) for place, error in outcomes.items() if error is not None}


def committed_offsets(admin: Admin, name: str, timeout: float) -> dict[TopicPartition, int]:
    """Return what a group has committed; nothing for one that is not there."""
    from tarry.client import ClientError

    answer = admin.group_offsets([name], timeout=timeout)[name]
    if isinstance(answer, ClientError):
        raise answer
    return {place: one.offset for place, one in sorted(answer.items())}


def chosen(
    wanted: dict[str, list[int] | None], places: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """Return those of the places that were asked for; single partitions even if they are not
    there.
    """
    found: dict[TopicPartition, None] = {}
    for topic, partitions in wanted.items():
        if partitions is None:
            found.update(dict.fromkeys(place for place in places if place[0] == topic))
        else:
            found.update(dict.fromkeys((topic, index) for index in partitions))
    return sorted(found)


def _shifted(place: TopicPartition, before: int | None, number: int) -> int:
    if before is None:
        fail(
            f"nothing is committed for {place[0]} [{place[1]}], so it cannot be shifted; name "
            f"the partitions that have a commit, as in --topic {place[0]}:0,2"
        )
    return before + number
