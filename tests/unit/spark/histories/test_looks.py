"""Looks: which questions leaders are asked, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from tarry.base.errors import (
    FENCED_LEADER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
)
from tarry.base.ids import TopicPartition
from tarry.client import BrokerError, ClientError, FoundEpoch, UnsupportedVersion
from tarry.spark.histories import looks
from tarry.spark.histories.lines import Line, LogEnd, NotedPlace
from tarry.spark.histories.looks import Looks, partings_of

ZERO, ONE = ("orders", 0), ("orders", 1)


class ToldLogs:
    """Leaders of logs that have one epoch below their own, `parts` by partition; errors are told
    once."""

    def __init__(self, **logs: tuple[int, int]) -> None:
        self.ends = {("orders", int(name[1:])): LogEnd(*end) for name, end in logs.items()}
        self.below = dict.fromkeys(self.ends, FoundEpoch(0, 50))
        self.errors: list[ClientError] = []
        self.asked: list[dict[TopicPartition, int]] = []
        self.renewed = 0
        self.newer: dict[TopicPartition, LogEnd] = {}
        self.compacted_topics: list[str] = []
        self.policies_asked = 0

    def log_ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        return {place: self.ends[place] for place in places}

    def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, FoundEpoch | ClientError]:
        assert leader_epochs == {place: self.ends[place].leader_epoch for place in epochs}
        self.asked.append(dict(epochs))
        if self.errors:
            return dict.fromkeys(epochs, self.errors.pop(0))
        return {place: self.below[place] for place in epochs}

    def is_compacted(self, topic: str) -> bool:
        self.policies_asked += 1
        return topic in self.compacted_topics

    def renew(self) -> None:
        self.renewed += 1
        self.ends.update(self.newer)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "LOOK_PAUSE_SECONDS", 0)


def noted(offset: int, *line: tuple[int, int], topic_id: str = "a") -> NotedPlace:
    return NotedPlace(offset, line, topic_id)


def test_leaders_are_asked_once_for_each_new_epoch_of_theirs() -> None:
    logs = ToldLogs(p0=(80, 3), p1=(50, 0))
    look = Looks(logs).look
    place = (0, 0)

    seen = look({ZERO: noted(50, place), ONE: noted(50, place)})

    assert partings_of(seen) == {}
    assert seen[ZERO].found.line == ((0, 0), (3, 50))
    assert logs.asked == [{ZERO: 2}]
    # The query has gone on.
    logs.ends = {ZERO: LogEnd(90, 3), ONE: LogEnd(70, 0)}
    look({ZERO: noted(80, place, (3, 50)), ONE: noted(70, place)})
    look({ZERO: noted(60, place, (3, 50)), ONE: noted(70, place)})
    assert len(logs.asked) == 1
    logs.ends[ONE] = LogEnd(70, 2)
    seen = look({ZERO: noted(90, place, (3, 50)), ONE: noted(70, place)})
    assert logs.asked[1:] == [{ONE: 1}]
    assert partings_of(seen) == {ONE: 50}


def test_where_a_log_parts_is_told_until_the_query_has_gone_back() -> None:
    logs = ToldLogs(p0=(80, 3))
    look = Looks(logs).look

    for _ in range(2):
        assert partings_of(look({ZERO: noted(60, (0, 0))})) == {ZERO: 50}
    assert partings_of(look({ZERO: noted(50, (0, 0))})) == {}
    assert partings_of(look({ZERO: noted(80, (0, 0), (3, 50))})) == {}
    assert len(logs.asked) == 2


def test_a_log_that_is_only_shorter_is_told_by_its_end_alone() -> None:
    logs = ToldLogs(p0=(50, 3))
    look = Looks(logs).look

    assert partings_of(look({ZERO: noted(60, (0, 0))})) == {}
    logs.ends[ZERO] = LogEnd(55, 3)
    assert partings_of(look({ZERO: noted(60, (0, 0))})) == {ZERO: 50}


def test_a_topic_made_anew_is_looked_at_anew() -> None:
    logs = ToldLogs(p0=(80, 3))
    look = Looks(logs).look
    look({ZERO: noted(60)})

    logs.below[ZERO] = FoundEpoch(0, 20)
    seen = look({ZERO: noted(0, topic_id="b")})

    assert seen[ZERO].found.line == ((0, 0), (3, 20))


def test_brokers_that_cannot_tell_are_not_asked_again_and_end_no_query() -> None:
    logs = ToldLogs(p0=(80, 3), p1=(80, -1))
    logs.errors = [UnsupportedVersion("an old broker")]
    look = Looks(logs).look

    for offset in (60, 60, 70):
        line = [(0, 0)] if offset == 60 else []
        seen = look({ZERO: noted(offset, *line), ONE: noted(60, (0, 0))})
        assert partings_of(seen) == {}
        assert seen[ZERO].found.line == seen[ONE].found.line == ()
    assert len(logs.asked) == 1


@pytest.mark.parametrize("code", [FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH])
def test_a_leader_that_changes_meanwhile_is_looked_at_anew(code: int) -> None:
    logs = ToldLogs(p0=(80, 3))
    logs.errors = [BrokerError(code, "not this one")]
    logs.newer = {ZERO: LogEnd(90, 4)}

    seen = Looks(logs).look({ZERO: noted(60, (0, 0))})

    assert (logs.renewed, seen[ZERO].end.leader_epoch) == (1, 4)
    assert logs.asked == [{ZERO: 2}, {ZERO: 3}]
    assert partings_of(seen) == {ZERO: 50}


def test_a_leader_that_never_stays_is_an_error() -> None:
    logs = ToldLogs(p0=(80, 3))
    logs.errors = [BrokerError(FENCED_LEADER_EPOCH, "not this one") for _ in range(9)]

    with pytest.raises(BrokerError, match="not this one"):
        Looks(logs).look({ZERO: noted(60, (0, 0))})
    assert len(logs.asked) == looks.LOOK_ATTEMPTS + 1


def test_a_leader_that_is_deposed_and_does_not_know_it_is_asked_again() -> None:
    logs = ToldLogs(p0=(60, 1))
    logs.newer = {ZERO: LogEnd(80, 3)}
    place = noted(70, (0, 0), (3, 50))

    assert partings_of(Looks(logs).look({ZERO: place})) == {}
    assert (logs.renewed, logs.asked) == (1, [])


def test_a_cluster_that_was_brought_back_from_an_older_state_is_noticed() -> None:
    logs = ToldLogs(p0=(80, 1))

    seen = Looks(logs).look({ZERO: noted(70, (1, 0), (3, 50))})

    assert logs.renewed == looks.LOOK_ATTEMPTS
    assert partings_of(seen) == {ZERO: 50}


def test_a_refusal_ends_the_look() -> None:
    logs = ToldLogs(p0=(80, 3))
    logs.errors = [BrokerError(TOPIC_AUTHORIZATION_FAILED, "not for you")]

    with pytest.raises(BrokerError, match="not for you"):
        Looks(logs).look({ZERO: noted(60, (0, 0))})


@pytest.mark.parametrize(
    ("is_compacted", "partings", "line"),
    [
        (False, {ZERO: 40}, ((0, 0), (3, 75))),
        (True, {}, ((0, 0), (1, 40), (3, 75))),
    ],
)
def test_a_compacted_log_may_lack_the_epoch_of_the_place(
    is_compacted: bool, partings: dict[TopicPartition, int], line: Line
) -> None:
    logs = ToldLogs(p0=(80, 3))
    logs.below[ZERO] = FoundEpoch(0, 75)
    logs.compacted_topics = ["orders"] if is_compacted else []
    look = Looks(logs).look

    seen = look({ZERO: noted(60, (0, 0), (1, 40))})

    assert partings_of(seen) == partings
    assert seen[ZERO].found.line == line
    look({ZERO: noted(60, (0, 0), (1, 40))})
    assert len(logs.asked) == (1 if is_compacted else 2)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_in_the_midst_of_a_compacted_log_no_epoch_is_sure(is_compacted: bool) -> None:
    logs = ToldLogs(p0=(80, 3), p1=(50, 3))
    logs.compacted_topics = ["orders"] if is_compacted else []
    looks_at = Looks(logs)
    seen = looks_at.look({ZERO: noted(0), ONE: noted(0)})

    # In the newest epoch, and at the end of a log, it is.
    assert looks_at.lines_at(seen, {ZERO: 80, ONE: 50}) == {ZERO: ((0, 0), (3, 50)), ONE: ((0, 0),)}
    assert looks_at.lines_at(seen, {ZERO: 51}) == {ZERO: ((0, 0), (3, 50))}
    assert logs.policies_asked == 0
    unsure = looks_at.lines_at(seen, {ZERO: 50, ONE: 40})
    assert unsure == ({} if is_compacted else {ZERO: ((0, 0),), ONE: ((0, 0),)})
    looks_at.lines_at(seen, {ZERO: 40})
    assert logs.policies_asked == 1
    # Places without a line are no reason to ask again.
    looks_at.look({ZERO: noted(40), ONE: noted(40)})
    assert len(logs.asked) == 1
