"""Fetch sessions of replicas (KIP-227): a cycle costs by what is new, and nobody has another's."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import records_in
from tests.support.broker.leader_scene import (
    FETCH_VERSION,
    LIVES,
    SECOND,
    SHARED,
    THIRD,
    LeaderScene,
    parts_of,
)

from tarry.base import errors
from tarry.base.limits import UNSENT_BYTES_MAX
from tarry.broker.replication.fetch_sessions import (
    HASTE_MS,
    HASTY_WAIT_MS,
    SESSIONS_PER_REPLICA_MAX,
    ReplicaSessions,
)
from tarry.broker.replication.leader_fetch import ReplicaFetchHandler
from tarry.partition.followers import NOT_TOLD
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchRequest, FetchResponse
from tarry.simulation.by_hand import ClientByHand


def handler_of(scene: LeaderScene) -> ReplicaFetchHandler:
    handler = scene.broker.neighbours.replica_fetches
    assert isinstance(handler, ReplicaFetchHandler)
    return handler


def sessions_of(scene: LeaderScene) -> ReplicaSessions:
    return handler_of(scene)._sessions


def answer_to(scene: LeaderScene, lane: ClientByHand, request: FetchRequest) -> FetchResponse:
    answer = lane.ask(api_keys.FETCH, FETCH_VERSION, request)
    assert isinstance(answer, FetchResponse)
    scene.hand.settle()
    return answer


def test_a_full_fetch_answers_all_and_begins_a_session() -> None:
    scene = LeaderScene(partitions=3)

    answer = scene.fetch(SECOND, {0: 0, 1: 0, 2: 0})

    assert answer.session_id != 0
    assert sorted(parts_of(answer)) == [0, 1, 2]


def test_a_fetch_in_a_session_waits_and_is_answered_with_what_is_new_alone() -> None:
    scene = LeaderScene(isr=(1,), partitions=3)
    session = scene.fetch(SECOND, {0: 0, 1: 0, 2: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    early = scene.answered(SECOND)

    scene.write(b"a", index=1)

    (answer,) = scene.answered(SECOND)
    assert early == []
    assert (answer.session_id, list(parts_of(answer))) == (session, [1])
    assert [each.value for each in records_in(parts_of(answer)[1])] == [b"a"]


def test_a_fetch_that_waits_in_vain_is_answered_in_time_and_empty() -> None:
    scene = LeaderScene(isr=(1,))
    scene.pass_ms(HASTE_MS)
    session = scene.fetch(SECOND, {0: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)

    scene.pass_ms(400)
    early = scene.answered(SECOND)
    scene.pass_ms(200)

    (late,) = scene.answered(SECOND)
    assert (early, late.error_code, late.responses) == ([], errors.NONE, [])


def test_a_cycle_costs_by_what_is_new_and_not_by_what_is_followed() -> None:
    scene = LeaderScene(isr=(1,), partitions=200)
    session = scene.fetch(SECOND, dict.fromkeys(range(200), 0)).session_id
    handler = handler_of(scene)
    looked: list[object] = []
    look = handler._look
    handler._look = lambda seat: (looked.append(seat), look(seat))[1]  # type: ignore[func-returns-value, method-assign]
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)

    scene.write(b"a", index=7)
    scene.write(b"b", index=9)
    first = scene.answered(SECOND)
    scene.fetch(SECOND, {7: 1}, last_epoch=0, session=(session, 2))
    scene.fetch(SECOND, {9: 1}, last_epoch=0, session=(session, 3))

    assert len(first) == 1
    assert 0 < len(looked) < 20
    assert {seat.asked.partition for seat in looked} == {7, 9}  # type: ignore[attr-defined]


def begin_at_one(scene: LeaderScene) -> None:
    """Have the leader's log begin at offset 1 and end at 2, in leader epoch 2."""
    scene.write(b"a", b"b")
    request = scene.operator.deletion((0, 1), topic="shared")
    scene.operator.client.send(api_keys.DELETE_RECORDS, 2, request)
    scene.pass_ms(500)
    scene.bring_row(leader_epoch=2)


def test_who_was_told_the_log_start_beside_a_divergence_is_told_once_more() -> None:
    """What comes with a divergence is dropped; until the start is the leader's nobody may join."""
    scene = LeaderScene(isr=(1,), replicas=(1, 2))
    begin_at_one(scene)
    first = scene.fetch(SECOND, {0: 3}, epoch=2, last_epoch=1, log_start=1)
    session = first.session_id
    terms: dict[str, object] = {"epoch": 2, "last_epoch": 0, "log_start": 1, "wait_ms": 500}

    scene.send_fetch(SECOND, {0: 2}, session=(session, 1), **terms)
    (second,) = scene.answered(SECOND)
    scene.send_fetch(SECOND, {0: 2}, session=(session, 2), **terms)

    assert parts_of(first)[0].diverging_epoch is not None
    assert [parts_of(each)[0].log_start_offset for each in (first, second)] == [1, 1]
    scene.hand.settle()
    assert scene.answered(SECOND) == []
    assert scene.isr() == [1, 2]


def test_who_names_a_lower_log_start_is_told_the_leaders_with_the_next_answer() -> None:
    """It may have begun anew since it was told, or not be able to follow: that hurries nobody."""
    scene = LeaderScene(isr=(1,), replicas=(1, 2))
    begin_at_one(scene)
    session = scene.fetch(SECOND, {0: 2}, epoch=2, last_epoch=0).session_id
    terms: dict[str, object] = {"epoch": 2, "last_epoch": 0, "wait_ms": 500}

    scene.send_fetch(SECOND, {0: 2}, session=(session, 1), **terms)
    early = scene.answered(SECOND)
    scene.pass_ms(500)
    (told,) = scene.answered(SECOND)
    scene.send_fetch(SECOND, {}, session=(session, 2), **terms)
    scene.pass_ms(500)
    (later,) = scene.answered(SECOND)

    assert early == []
    assert parts_of(told)[0].log_start_offset == 1
    assert parts_of(later) == {}


def test_what_had_no_room_comes_with_the_next_answer_and_none_starves() -> None:
    scene = LeaderScene(isr=(1,), partitions=3)
    for index in range(3):
        scene.write(b"x" * 500, index=index)
    session = scene.fetch(SECOND, dict.fromkeys(range(3), 0), bytes_max=1).session_id
    seen = []
    for number in range(1, 4):
        answer = scene.fetch(SECOND, {}, session=(session, number), bytes_max=1)
        seen += [index for index, each in parts_of(answer).items() if records_in(each)]

    # The first came with the full fetch; who has not asked from further on comes again.
    assert seen == [1, 2, 0]


@pytest.mark.parametrize("names", [{}, {0: 0}], ids=["nothing", "another directory"])
def test_who_guesses_id_and_epoch_of_a_broker_ends_none_of_its_sessions(
    names: dict[int, int],
) -> None:
    scene = LeaderScene(isr=(1, 2))
    session = scene.fetch(SECOND, {0: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    stranger = scene.hand.connect()
    for _ in range(SESSIONS_PER_REPLICA_MAX + 1):
        request = scene.request(SECOND, names, directory=b"guessed".ljust(16, b"."))
        answer = answer_to(scene, stranger, request)
        codes = [each.error_code for each in parts_of(answer).values()]
        assert (answer.session_id, codes) == (0, [errors.LOG_DIR_NOT_FOUND] * len(names))
    early = scene.answered(SECOND)
    scene.write(b"a")

    (answer,) = scene.answered(SECOND)
    assert early == []
    assert (answer.error_code, list(parts_of(answer))) == (errors.NONE, [0])
    assert len(sessions_of(scene)._sessions) == 1


def test_who_is_put_out_of_sync_is_asked_to_tell_anew_what_it_has() -> None:
    """It may have heard of it before the leader did, and have told it by then."""
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2))
    session = scene.fetch(SECOND, {0: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    scene.bring_row(isr=[1])
    (answer,) = scene.answered(SECOND)
    code = parts_of(answer)[0].error_code
    before = scene.partition().leadership.followers
    assert before is not None
    end = before.by_id[SECOND].copies[0].end
    scene.fetch(SECOND, {0: 0}, session=(session, 2))

    assert (code, end) == (errors.OFFSET_NOT_AVAILABLE, NOT_TOLD)
    assert before.by_id[SECOND].copies[0].end == 0


def test_partitions_that_are_forgotten_are_told_no_more() -> None:
    scene = LeaderScene(isr=(1,), partitions=2)
    session = scene.fetch(SECOND, {0: 0, 1: 0}).session_id
    scene.fetch(SECOND, {}, session=(session, 1), forgotten=(1,))

    scene.write(b"a", index=0)
    scene.write(b"b", index=1)

    answer = scene.fetch(SECOND, {}, session=(session, 2))
    assert list(parts_of(answer)) == [0]


def test_the_high_watermark_goes_with_the_next_answer() -> None:
    scene = LeaderScene(isr=(1, 2), replicas=(1, 2), partitions=2)
    session = scene.fetch(SECOND, {0: 0, 1: 0}).session_id
    scene.write(b"a", index=0)
    scene.fetch(SECOND, {}, session=(session, 1))

    answer = scene.fetch(SECOND, {0: 1}, last_epoch=0, session=(session, 2))

    assert {index: each.high_watermark for index, each in parts_of(answer).items()} == {0: 1}
    assert scene.fetch(SECOND, {}, session=(session, 3)).responses == []


def test_sessions_that_are_not_there_not_in_step_or_not_ones_own_are_refused() -> None:
    scene = LeaderScene(isr=(1,))
    mine = scene.fetch(SECOND, {0: 0}).session_id
    others = scene.fetch(THIRD, {0: 0}).session_id

    codes = [
        scene.fetch(SECOND, {}, session=(mine, 2)).error_code,
        scene.fetch(SECOND, {}, session=(others, 1)).error_code,
        scene.fetch(SECOND, {}, session=(mine + others, 1)).error_code,
        scene.fetch(SECOND, {}, session=(mine, 1)).error_code,
        scene.fetch(SECOND, {}, session=(mine, 1)).error_code,
    ]

    assert codes == [
        errors.INVALID_FETCH_SESSION_EPOCH,
        errors.FETCH_SESSION_ID_NOT_FOUND,
        errors.FETCH_SESSION_ID_NOT_FOUND,
        errors.NONE,
        errors.INVALID_FETCH_SESSION_EPOCH,
    ]


def test_a_replica_has_few_sessions_and_none_of_an_earlier_life() -> None:
    scene = LeaderScene(isr=(1,))
    opened = [scene.fetch(SECOND, {0: 0}).session_id for _ in range(10)]
    kept = len(sessions_of(scene))
    scene.live(SECOND, 50)

    code = scene.fetch(SECOND, {}, session=(opened[-1], 1), broker_epoch=50).error_code
    scene.fetch(SECOND, {0: 0}, broker_epoch=50)

    assert kept == SESSIONS_PER_REPLICA_MAX
    assert code == errors.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions_of(scene)) == 1


def test_sessions_end_with_the_life_of_their_broker() -> None:
    scene = LeaderScene(isr=(1, 2, 3))
    for broker_id in (SECOND, SECOND, THIRD):
        scene.fetch(broker_id, {0: 0})
    scene.send_fetch(SECOND, {0: 0}, wait_ms=500)
    scene.live(THIRD, LIVES[THIRD], "leaving")
    before = len(sessions_of(scene))

    scene.die(SECOND)
    after_death = len(sessions_of(scene))
    scene.live(THIRD, 77)

    assert (before, after_death, len(sessions_of(scene))) == (4, 1, 0)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_late_request_of_another_session_is_no_lost_disk(is_full: bool) -> None:
    scene = LeaderScene(isr=(1, 2), min_insync_replicas="2")
    scene.write(b"a")
    earlier = scene.fetch(SECOND, {0: 1}, last_epoch=0).session_id
    scene.write(b"b", b"c")
    # The partition is in the other lane now.
    lane = scene.hand.connect()
    asked = scene.request(SECOND, {0: 3}, last_epoch=0)
    session = answer_to(scene, lane, asked).session_id

    late = scene.fetch(SECOND, {0: 1}, last_epoch=0, session=(0, 0) if is_full else (earlier, 1))
    scene.write(b"d")
    answer = answer_to(
        scene, lane, scene.request(SECOND, {0: 4}, last_epoch=0, session=(session, 1))
    )

    assert parts_of(late)[0].error_code == errors.OFFSET_NOT_AVAILABLE
    assert answer.error_code == errors.NONE
    assert (scene.isr(), scene.high_watermark) == ([1, 2], 4)


def test_who_says_again_that_it_has_less_is_believed() -> None:
    scene = LeaderScene(isr=(1, 2), min_insync_replicas="2")
    scene.write(b"a", b"b")
    scene.fetch(SECOND, {0: 2}, last_epoch=0)

    doubted = scene.fetch(SECOND, {0: 1}, last_epoch=0)
    before = scene.isr()
    again = scene.fetch(SECOND, {0: 1}, last_epoch=0, session=(doubted.session_id, 1))

    assert parts_of(again)[0].error_code == errors.NONE
    assert (before, scene.isr()) == ([1, 2], [1])


def test_a_newer_fetch_of_a_session_ends_the_one_that_waits() -> None:
    scene = LeaderScene(isr=(1,))
    session = scene.fetch(SECOND, {0: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    other = scene.hand.connect()
    other.send(1, 17, scene.request(SECOND, {}, session=(session, 2), wait_ms=500))

    (answer,) = scene.answered(SECOND)

    assert answer.responses == []
    assert other.answers() == []


def test_followers_hear_at_once_that_another_one_leads_or_the_topic_is_gone() -> None:
    scene = LeaderScene(isr=(1, 2), partitions=2)
    session = scene.fetch(SECOND, {0: 0, 1: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    scene.bring_row(leader_id=THIRD, leader_epoch=1, broker_epoch=13)
    (moved,) = scene.answered(SECOND)
    scene.send_fetch(SECOND, {}, session=(session, 2), wait_ms=500)
    early = scene.answered(SECOND)
    scene.operator.delete("shared")

    (gone,) = scene.answered(SECOND)
    codes = {index: each.error_code for index, each in parts_of(moved).items()}
    assert codes == {0: errors.NOT_LEADER_OR_FOLLOWER}
    assert parts_of(moved)[0].current_leader.leader_id == THIRD  # type: ignore[union-attr]
    assert early == []
    assert parts_of(gone)[1].error_code in (
        errors.UNKNOWN_TOPIC_ID,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    )


def test_who_begins_a_session_just_after_a_leader_has_changed_need_not_wait_either() -> None:
    """What it is to name next it may still have to cut."""
    scene = LeaderScene(isr=(1, 2), partitions=2)
    scene.bring_row(0, leader_id=2, leader_epoch=1, broker_epoch=LIVES[2])
    scene.bring_row(0, leader_id=1, leader_epoch=2, broker_epoch=LIVES[1])
    session = scene.fetch(SECOND, {1: 0}).session_id

    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    too_early = scene.answered(SECOND)
    scene.pass_ms(HASTY_WAIT_MS + 2)
    soon = scene.answered(SECOND)
    scene.pass_ms(HASTE_MS)
    scene.send_fetch(SECOND, {}, session=(session, 2), wait_ms=500)
    scene.pass_ms(HASTY_WAIT_MS + 2)

    assert (len(too_early), len(soon)) == (0, 1)
    assert scene.answered(SECOND) == []


def test_who_has_to_cut_its_log_need_not_wait_to_ask_again() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(b"a", b"b")
    scene.bring_row(leader_epoch=2)
    scene.pass_ms(HASTE_MS + 100)
    answer = scene.fetch(SECOND, {0: 3}, epoch=2, last_epoch=1)
    assert parts_of(answer)[0].diverging_epoch is not None

    # Meanwhile it asks for what else it follows.
    session = answer.session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), forgotten=(0,), wait_ms=500)
    scene.pass_ms(HASTY_WAIT_MS + 2)

    assert len(scene.answered(SECOND)) == 1


def test_followers_of_what_is_led_from_now_on_need_not_wait_to_name_it() -> None:
    scene = LeaderScene(isr=(1, 2), partitions=2)
    scene.bring_row(1, leader_id=2, leader_epoch=1, broker_epoch=LIVES[2])
    scene.pass_ms(HASTE_MS)
    session = scene.fetch(SECOND, {0: 0}).session_id
    scene.send_fetch(SECOND, {}, session=(session, 1), wait_ms=500)
    before = scene.answered(SECOND)

    scene.bring_row(1, leader_id=1, leader_epoch=2, broker_epoch=LIVES[1])
    at_once = scene.answered(SECOND)
    # The follower has not heard of it yet, and asks as before.
    scene.send_fetch(SECOND, {}, session=(session, 2), wait_ms=500)
    too_early = scene.answered(SECOND)
    scene.pass_ms(HASTY_WAIT_MS + 2)
    soon = scene.answered(SECOND)
    scene.pass_ms(HASTE_MS)
    scene.send_fetch(SECOND, {}, session=(session, 3), wait_ms=500)
    scene.pass_ms(400)

    assert (before, too_early) == ([], [])
    assert [each.responses for each in at_once + soon] == [[], []]
    assert scene.answered(SECOND) == []


def test_nothing_is_left_of_sessions_whose_partitions_are_gone() -> None:
    scene = LeaderScene(isr=(1,), partitions=2)
    session = scene.fetch(SECOND, {0: 0, 1: 0}).session_id
    scene.fetch(SECOND, {}, session=(session, 1), forgotten=(0, 1))

    sessions = sessions_of(scene)
    assert sessions._seats == {}
    assert sessions.purgatory.watched == 0
    assert len(SHARED) == 16


def test_a_session_that_is_ended_is_gone() -> None:
    scene = LeaderScene(isr=(1,))
    session = scene.fetch(SECOND, {0: 0}).session_id

    last = scene.fetch(SECOND, {0: 0}, session=(session, -1))
    after = scene.fetch(SECOND, {}, session=(session, 1))

    assert (last.session_id, list(parts_of(last))) == (0, [0])
    assert after.error_code == errors.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions_of(scene)) == 0


def test_a_full_answer_looks_at_no_more_partitions_and_all_have_their_turn() -> None:
    scene = LeaderScene(isr=(1,), partitions=50)
    for index in range(50):
        scene.write(b"x" * 100, index=index)
    handler = handler_of(scene)
    looked: list[object] = []
    look = handler._look
    session = scene.fetch(SECOND, dict.fromkeys(range(50), 0), bytes_max=1).session_id
    handler._look = lambda seat: (looked.append(seat), look(seat))[1]  # type: ignore[func-returns-value, method-assign]

    seen = {}
    for number in range(1, 50):
        answer = scene.fetch(SECOND, {}, session=(session, number), bytes_max=1)
        seen.update({index: 1 for index, each in parts_of(answer).items() if each.records})

    assert len(looked) < 200
    assert len(seen) == 49


def test_what_no_replica_can_ask_for_is_not_kept_in_a_session() -> None:
    """Who guesses a broker's id and epoch may name what it likes, one request after the other."""
    scene = LeaderScene(isr=(1,), partitions=2)
    answer = scene.fetch(SECOND, {0: 0})
    session_id = answer.session_id
    strange: list[dict[str, object]] = [
        {"topic_id": b"n" * 16},
        {"directory": b"x" * 16},
        {"directory": bytes(16)},
    ]
    codes: set[int] = set()
    for number, terms in enumerate(strange, 1):
        asked = dict.fromkeys(range(1, 50), 0)
        told = scene.fetch(SECOND, asked, session=(session_id, number), **terms)
        codes |= {each.error_code for each in parts_of(told).values()}

    session = sessions_of(scene).get(session_id)
    assert session is not None
    assert list(session.seats) == [(SHARED, 0, 0)]
    assert codes == {
        errors.UNKNOWN_TOPIC_ID,
        errors.LOG_DIR_NOT_FOUND,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    # Who has a right to it asks once more.
    assert parts_of(scene.fetch(SECOND, {1: 0}, session=(session_id, 4)))[1].error_code == 0


def test_a_follower_that_reads_a_byte_a_second_holds_up_nobody_for_longer_than_the_lag() -> None:
    scene = LeaderScene(isr=(1, 2, 3), min_insync_replicas="2")
    slow = scene.link(SECOND)
    sessions = {each: scene.fetch(each, {0: 0}).session_id for each in (SECOND, THIRD)}
    scene.write(b"a" * 500_000)
    # It asks again and again, and what it is answered stays here.
    scene.hand.transport.stuck[slow.connection_id] = True
    connection = scene.broker.answers.connections[slow.connection_id]
    unsent: list[int] = []
    for number in range(1, 60):
        scene.send_fetch(SECOND, {0: 0}, session=(sessions[SECOND], number))
        unsent.append(int(connection.unsent))
    copied = scene.fetch(THIRD, {0: 0}, session=(sessions[THIRD], 1))
    scene.fetch(THIRD, {0: 1}, session=(sessions[THIRD], 2), last_epoch=0)
    before = (scene.isr(), scene.high_watermark)
    number = 3
    for _ in range(scene.broker.settings.replica_lag_time_max_ms // 1_000 + 2):
        scene.fetch(THIRD, {}, session=(sessions[THIRD], number))
        scene.pass_ms(1_000)
        number += 1

    assert len(records_in(parts_of(copied)[0])) == 1
    assert UNSENT_BYTES_MAX <= max(unsent) < UNSENT_BYTES_MAX + 1_000_000
    assert before == ([1, 2, 3], 0)
    assert (scene.isr(), scene.high_watermark) == ([1, 3], 1)
