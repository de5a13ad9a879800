"""A follower's session: what each request says, by what has changed since the one before."""

from __future__ import annotations

from tarry.broker.replication.follower_session import FollowerSession, Position

A, B, C = (b"a" * 16, 0), (b"a" * 16, 1), (b"b" * 16, 0)


def at(offset: int) -> Position:
    return Position(offset, 3, 2, 0)


def said(session: FollowerSession) -> tuple[dict[tuple[bytes, int], int], list[tuple[bytes, int]]]:
    topics, forgotten = session.take_topics()
    return (
        {
            (topic.topic_id, one.partition): one.fetch_offset
            for topic in topics
            for one in topic.partitions
        },
        [(topic.topic_id, index) for topic in forgotten for index in topic.partitions],
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
