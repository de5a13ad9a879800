"""Looks at logs: their ends, and whether what was noted of them still lies in them.

A look costs what the ends of the logs cost: the leaders name their epochs beside them.  They are
asked more only where they lead in an epoch that is newer than the noted one, and once each time.
That is enough: within one epoch a log has one leader, which only appends, and a question about the
leader's own epoch is answered with the end of its log, which is known.  A broker that lost what it
had not flushed comes back in a newer epoch, of Tarry as of Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from tarry.base.errors import FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH
from tarry.base.ids import TopicPartition
from tarry.client import BrokerError, ClientError, FoundEpoch, UnsupportedVersion
from tarry.spark.histories.lines import Line, LogEnd, NotedPlace, line_before
from tarry.spark.histories.walk import EPOCH_UNKNOWN, FoundLine, Walk

# A broker that does not know yet that it leads no more tells of an older epoch than was noted: it
# is asked so often again, after a pause.
LOOK_ATTEMPTS: Final = 3
LOOK_PAUSE_SECONDS = 0.5

# Answers of a leader that leads in another epoch than the one whose end was told.
MOVED: Final = (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)

UNTOLD: Final = FoundEpoch(EPOCH_UNKNOWN, -1)


class EpochTeller(Protocol):
    """Questions of a look to a cluster."""

    def log_ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Find the offset behind the last record that may be read, and the leader's epoch."""
        ...

    def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, FoundEpoch | ClientError]:
        """Find where epochs end in the logs of these leaders."""
        ...

    def is_compacted(self, topic: str) -> bool:
        """Tell whether a topic is compacted, or may be."""
        ...

    def renew(self) -> None:
        """Forget who leads."""
        ...


class SeenLog(NamedTuple):
    """Log as a look found it."""

    end: LogEnd
    found: FoundLine


def partings_of(seen: Mapping[TopicPartition, SeenLog]) -> dict[TopicPartition, int]:
    """Return where logs part from what was noted of them."""
    return {
        place: one.found.parting for place, one in seen.items() if one.found.parting is not None
    }


class _Kept(NamedTuple):
    """Answer that holds while the leader's epoch does."""

    leader_epoch: int
    noted: NotedPlace
    found: FoundLine


class Looks:
    """Looks of one query or job, which remembers what leaders told."""

    def __init__(self, teller: EpochTeller) -> None:
        self._teller = teller
        self._kept: dict[TopicPartition, _Kept] = {}
        self._compacted: dict[str, bool] = {}

    def look(self, noted: Mapping[TopicPartition, NotedPlace]) -> dict[TopicPartition, SeenLog]:
        """Look at the logs of these places."""
        attempt = 0
        while True:
            ends = self._teller.log_ends(noted)
            is_stale = any(
                one.line and EPOCH_UNKNOWN < ends[place].leader_epoch < one.line[-1][0]
                for place, one in noted.items()
            )
            moved = None
            if not is_stale or attempt == LOOK_ATTEMPTS:
                moved = self._walk(noted, ends)
                if moved is None:
                    return {place: self._seen(place, end) for place, end in ends.items()}
                if attempt == LOOK_ATTEMPTS:
                    raise moved
            attempt += 1
            time.sleep(LOOK_PAUSE_SECONDS)
            self._teller.renew()

    def _seen(self, place: TopicPartition, end: LogEnd) -> SeenLog:
        found = self._kept[place].found
        if found.parting is not None and found.parting >= end.offset:
            # The log is only shorter, up to now.
            found = FoundLine(found.line)
        return SeenLog(end, found)

    def _walk(
        self, noted: Mapping[TopicPartition, NotedPlace], ends: Mapping[TopicPartition, LogEnd]
    ) -> ClientError | None:
        """Ask leaders as far as their answers do not hold any more; return what says that one of
        them has changed meanwhile."""
        walks: dict[TopicPartition, Walk] = {}
        for place, one in noted.items():
            kept = self._kept.get(place)
            if kept is not None and _is_known(kept, one, ends[place].leader_epoch):
                self._kept[place] = kept._replace(noted=one, found=FoundLine(kept.found.line))
            else:
                walks[place] = Walk(one, ends[place])
        while asked := {
            place: walk.question for place, walk in walks.items() if walk.question is not None
        }:
            leaders = {place: ends[place].leader_epoch for place in asked}
            answers = self._teller.epoch_ends(asked, leaders)
            for place in asked:
                answer = answers[place]
                if isinstance(answer, UnsupportedVersion):
                    # Brokers that old cannot tell.
                    answer = UNTOLD
                if isinstance(answer, ClientError):
                    if isinstance(answer, BrokerError) and answer.code in MOVED:
                        return answer
                    raise answer
                walks[place].take(*answer)
        found = self._without_doubt({place: walk.found for place, walk in walks.items()})
        for place, line in found.items():
            self._kept[place] = _Kept(ends[place].leader_epoch, noted[place], line)
        return None

    def _without_doubt(
        self, found: dict[TopicPartition, FoundLine]
    ) -> dict[TopicPartition, FoundLine]:
        """Decide where logs go on past the noted place in older epochs."""
        for place, one in found.items():
            if one.if_compacted is not None and self._is_compacted(place[0]):
                found[place] = FoundLine(one.if_compacted)
        return found

    def lines_at(
        self, seen: Mapping[TopicPartition, SeenLog], offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Line]:
        """Return the lines that are noted beside these offsets.

        In the midst of a compacted log nobody can tell of which epoch the record before an offset
        was: the leader may have lost that epoch with its records, and another replica not.
        """
        lines: dict[TopicPartition, Line] = {}
        for place, offset in offsets.items():
            end, found = seen[place]
            line = line_before(found.line, offset)
            is_sure = offset >= end.offset or line[-1:] == found.line[-1:]
            if line and (is_sure or not self._is_compacted(place[0])):
                lines[place] = line
        return lines

    def _is_compacted(self, topic: str) -> bool:
        if topic not in self._compacted:
            self._compacted[topic] = self._teller.is_compacted(topic)
        return self._compacted[topic]


def _is_known(kept: _Kept, noted: NotedPlace, leader_epoch: int) -> bool:
    """Tell whether a place needs no question: it lies in the log that was looked at."""
    if (kept.leader_epoch, kept.noted.topic_id) != (leader_epoch, noted.topic_id):
        return False
    parting = kept.found.parting
    if kept.noted == noted:
        # What is only shorter may have grown.
        return parting is None
    if parting is not None and noted.offset > parting:
        return False
    # A place without a line parts from nothing.
    return not noted.line or noted.line == line_before(kept.found.line, noted.offset)
