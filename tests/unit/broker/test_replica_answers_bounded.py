"""Answers to replicas that follow thousands: some of the partitions at a time, each in its turn."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import records_in
from tests.support.broker.leader_scene import FETCH_VERSION, SECOND, LeaderScene, parts_of

from tarry.base import errors
from tarry.broker.replication import leader_fetch
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchResponse


def test_so_many_partitions_have_records_in_one_answer_and_the_others_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = LeaderScene(isr=(1,), partitions=5)
    for index in range(5):
        scene.write(b"a", index=index)
    monkeypatch.setattr(leader_fetch, "FETCHED_LOGS_MAX", 2)

    answer = scene.fetch(SECOND, dict.fromkeys(range(5), 0))
    seen = [[index for index, each in parts_of(answer).items() if records_in(each)]]
    for number in (1, 2):
        told = scene.fetch(SECOND, {}, session=(answer.session_id, number))
        seen.append([index for index, each in parts_of(told).items() if records_in(each)])

    # Who does not ask from further on comes again, behind the others.
    assert seen == [[0, 1], [2, 3], [4, 0]]


def test_ends_that_one_answer_has_no_room_for_go_with_the_next_which_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = LeaderScene(isr=(1,), partitions=5)
    monkeypatch.setattr(leader_fetch, "ENDS_TOLD_MAX", 2)

    first = scene.fetch(SECOND, dict.fromkeys(range(5), 0))
    told = [list(parts_of(first))]
    for number in (1, 2):
        scene.send_fetch(SECOND, {}, session=(first.session_id, number), wait_ms=500)
        (answer,) = scene.answered(SECOND)
        told.append(list(parts_of(answer)))
    scene.send_fetch(SECOND, {}, session=(first.session_id, 3), wait_ms=500)

    assert told == [[0, 1], [2, 3], [4]]
    assert scene.answered(SECOND) == []


def test_a_stranger_who_names_thousands_is_told_of_some_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = LeaderScene(isr=(1,), partitions=5)
    stranger = scene.hand.connect()
    request = scene.request(
        SECOND, dict.fromkeys(range(5), 0), directory=b"guessed".ljust(16, b".")
    )
    monkeypatch.setattr(leader_fetch, "PARTITIONS_PER_FETCH_MAX", 2)

    answer = stranger.ask(api_keys.FETCH, FETCH_VERSION, request)

    assert isinstance(answer, FetchResponse)
    codes = {index: each.error_code for index, each in parts_of(answer).items()}
    assert codes == dict.fromkeys(range(2), errors.LOG_DIR_NOT_FOUND)
