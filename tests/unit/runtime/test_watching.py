"""A watch of etcd by the bytes of its messages: revisions that come in pieces are told whole."""

from __future__ import annotations

from tarry.base.etcd import EtcdAnswer, Removed, RevisionSeen, Row, WatchEnded
from tarry.runtime.etcd import etcd_pb2 as pb
from tarry.runtime.etcd.watching import Watching

CALL_ID = 7


def put(key: bytes, revision: int) -> pb.Event:
    pair = pb.KeyValue(key=key, value=b"v", create_revision=1, mod_revision=revision)
    return pb.Event(type=pb.Event.PUT, kv=pair)


def deletion(key: bytes, revision: int) -> pb.Event:
    return pb.Event(type=pb.Event.DELETE, kv=pb.KeyValue(key=key, mod_revision=revision))


def message(*events: pb.Event, fragment: bool = False, revision: int = 0) -> bytes:
    header = pb.Header(revision=revision)
    response = pb.WatchResponse(header=header, events=events, fragment=fragment)
    return response.SerializeToString()


def row(key: bytes, revision: int) -> Row:
    return Row(key, b"v", 1, revision)


def seen(revision: int, *changes: Row | Removed) -> RevisionSeen:
    return RevisionSeen(CALL_ID, revision, list(changes))


def read_all(*messages: bytes) -> list[EtcdAnswer]:
    watching = Watching(CALL_ID, 1)
    return [answer for data in messages for answer in watching.read(data)]


def test_a_revision_in_two_fragments_is_told_once_and_whole() -> None:
    watching = Watching(CALL_ID, 1)

    first = watching.read(message(put(b"a", 5), fragment=True))
    second = watching.read(message(put(b"b", 5)))

    assert first == []
    assert second == [seen(5, row(b"a", 5), row(b"b", 5))]


def test_a_fragment_may_end_in_the_middle_of_any_revision() -> None:
    told = read_all(
        message(put(b"a", 5), put(b"b", 5), put(b"a", 6), fragment=True),
        message(deletion(b"b", 6), put(b"c", 7), fragment=True),
        message(put(b"d", 7)),
        message(put(b"e", 8)),
    )

    assert told == [
        seen(5, row(b"a", 5), row(b"b", 5)),
        seen(6, row(b"a", 6), Removed(b"b", 6)),
        seen(7, row(b"c", 7), row(b"d", 7)),
        seen(8, row(b"e", 8)),
    ]


def test_revisions_of_one_message_are_told_one_by_one() -> None:
    told = read_all(message(put(b"a", 5), put(b"b", 5), put(b"a", 9)))

    assert told == [seen(5, row(b"a", 5), row(b"b", 5)), seen(9, row(b"a", 9))]


def test_a_message_without_events_says_how_far_the_watch_is() -> None:
    created = pb.WatchResponse(created=True, header=pb.Header(revision=3))

    assert read_all(created.SerializeToString(), message(revision=4)) == [seen(4)]


def test_a_watch_that_ends_amid_fragments_tells_none_of_them() -> None:
    watching = Watching(CALL_ID, 1)
    watching.read(message(put(b"a", 5), fragment=True))

    told = watching.read(pb.WatchResponse(canceled=True, compact_revision=6).SerializeToString())

    assert told == [WatchEnded(CALL_ID, "revisions below 6 were compacted away", 6)]
    assert watching.is_ended
