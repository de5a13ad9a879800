"""A follower's session: what each request says, by what has changed since the one before."""

from __future__ import annotations

from tarry.base.limits import PARTITIONS_PER_FETCH_MAX
from tarry.broker.replication.follower_session import FollowerSession, Position
from tarry.broker.replication.lane_requests import ReplicaTerms, fetch_request
from tarry.partition.replicated_log import LogKey, key_of
from tarry.protocol.messages.fetch import FetchRequest, decode_fetch_request
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

A, B, C = key_of(b"a" * 16, 0), key_of(b"a" * 16, 1), key_of(b"b" * 16, 0)


def at(offset: int) -> Position:
    return Position(offset, 3, 2, 0)


def said(session: FollowerSession) -> tuple[dict[LogKey, int], list[LogKey]]:
    topics, forgotten = session.take_topics()
    return (
        {
            key_of(topic.topic_id, one.partition): one.fetch_offset
            for topic in topics
            for one in topic.partitions
        },
        [key_of(topic.topic_id, index) for topic in forgotten for index in topic.partitions],
    )


def begun() -> FollowerSession:
    session = FollowerSession(1_000)
    session.want(A, at(1))
    session.want(B, at(1))
    session.want(C, at(1))
    assert said(session) == ({A: 1, B: 1, C: 1}, [])
    assert session.on_answered(9)
    return session


def test_only_changes_are_named() -> None:
    session = begun()
    assert said(session) == ({}, [])
    assert session.on_answered(9)

    session.want(A, at(1))
    session.want(C, at(5))

    assert said(session) == ({C: 5}, [])
    assert (session.session_id, session.epoch) == (9, 2)
    assert session.asked(C) == at(5)


def test_more_partitions_than_a_request_may_name_are_named_one_request_after_the_other() -> None:
    session = FollowerSession(1_000)
    keys = [
        key_of(number.to_bytes(16, "big"), 0) for number in range(2 * PARTITIONS_PER_FETCH_MAX + 1)
    ]
    for key in keys:
        session.want(key, at(1))

    named = []
    for _ in range(4):
        named.append(list(said(session)[0]))
        session.on_answered(9)
    for key in keys:
        session.forget(key)
    forgotten = [said(session)[1] for _ in range(4)]

    assert [len(each) for each in named] == [PARTITIONS_PER_FETCH_MAX] * 2 + [1, 0]
    assert [key for each in named for key in each] == keys
    assert [len(each) for each in forgotten] == [PARTITIONS_PER_FETCH_MAX] * 2 + [1, 0]


def test_each_partition_has_its_turn_where_the_leader_keeps_no_session() -> None:
    session = FollowerSession(1_000)
    keys = [key_of(number.to_bytes(16, "big"), 0) for number in range(2 * PARTITIONS_PER_FETCH_MAX)]
    for key in keys:
        session.want(key, at(1))

    named: list[LogKey] = []
    for _ in range(2):
        named += said(session)[0]
        session.on_answered(0)

    assert named == keys


def test_a_request_that_had_no_room_for_all_asks_for_an_answer_at_once() -> None:
    """Else what the follower has of the others counted only after the leader's wait."""
    terms = ReplicaTerms(
        1,
        timeout_ms=30_000,
        wait_ms_max=500,
        bytes_min=1,
        partition_bytes_max=1_000,
        response_bytes_max=10_000,
        backoff_ms=10,
    )
    session = FollowerSession(1_000)
    for number in range(PARTITIONS_PER_FETCH_MAX + 1):
        session.want(key_of(number.to_bytes(16, "big"), 0), at(1))

    waits = []
    for _ in range(3):
        waits.append(fetch_request(terms, session).max_wait_ms)
        session.on_answered(9)

    assert waits == [0, 500, 500]


def test_the_largest_fetch_of_a_follower_is_a_request_that_a_leader_takes() -> None:
    session = FollowerSession(1_000)
    for number in range(2 * PARTITIONS_PER_FETCH_MAX):
        session.want(key_of(number.to_bytes(16, "big"), 0), at(1))
    session.take_topics()
    session.on_answered(9)
    for number in range(PARTITIONS_PER_FETCH_MAX):
        session.forget(key_of(number.to_bytes(16, "big"), 0))
    topics, forgotten = session.take_topics(b"directory" + bytes(7))
    writer = Writer()
    FetchRequest(topics=topics, forgotten_topics_data=forgotten).encode(writer, 18)
    reader = Reader(writer.finish())
    reader.expect_request()

    taken = decode_fetch_request(reader, 18)

    assert len(taken.topics) == len(taken.forgotten_topics_data) == PARTITIONS_PER_FETCH_MAX


def test_what_is_forgotten_is_named_so_once_and_named_anew_when_it_is_back() -> None:
    session = begun()
    session.forget(A)
    session.forget(B)
    session.want(B, at(1))

    assert said(session) == ({B: 1}, [A])
    session.on_answered(9)
    session.want(A, at(1))

    assert said(session) == ({A: 1}, [])


def test_what_was_never_told_is_not_told_to_be_forgotten() -> None:
    session = begun()
    other = (b"c" * 16, 0)
    session.want(other, at(0))
    session.forget(other)

    assert said(session) == ({}, [])


def test_an_answer_of_another_session_begins_anew_with_everything() -> None:
    session = begun()
    said(session)

    assert not session.on_answered(10)

    assert session.epoch == 0
    assert session.session_id == 9
    assert said(session) == ({A: 1, B: 1, C: 1}, [])
    assert session.on_answered(11)
    assert (session.session_id, session.epoch) == (11, 1)


def test_a_leader_that_keeps_no_session_is_told_everything_each_time() -> None:
    session = FollowerSession(1_000)
    session.want(A, at(1))
    said(session)

    assert session.on_answered(0)

    assert said(session) == ({A: 1}, [])


def test_epochs_begin_again_after_the_largest() -> None:
    session = begun()
    session.epoch = 0x7FFF_FFFF
    assert session.on_answered(9)
    assert session.epoch == 1


def test_what_is_back_is_named_anew_however_often_it_is_wanted() -> None:
    """The leader tells a refusal once: not named, the partition would never be fetched."""
    session = begun()
    session.forget(B)
    session.want(B, at(1))
    session.want(B, at(1))

    assert said(session) == ({B: 1}, [])
    assert session.on_answered(9)
    assert said(session) == ({}, [])
