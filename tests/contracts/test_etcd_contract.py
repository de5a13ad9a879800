"""One suite over etcds: the simulated one and a real one do the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.cluster.etcd_subjects import EtcdSubject, RealSubject, SimulatedSubject

from tarry.base.etcd import (
    TALLIED_MAX,
    CallFailed,
    Compare,
    EtcdAnswer,
    LeaseGranted,
    LeaseRenewed,
    LeaseRevoked,
    Operation,
    Put,
    Remove,
    Removed,
    RevisionSeen,
    Row,
    RowsRead,
    RowsTallied,
    StatusRead,
    TransactionEnded,
)
from tarry.runtime.etcd import etcd_pb2 as pb
from tarry.runtime.etcd.watching import Watching


@pytest.fixture(scope="module", params=["simulated", "real", "real 3.5"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EtcdSubject]:
    subject: EtcdSubject
    if request.param == "simulated":
        subject = SimulatedSubject()
    else:
        release = request.param.removeprefix("real").strip()
        subject = RealSubject(tmp_path_factory.mktemp("etcd"), release)
    yield subject
    subject.close()


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> bytes:
    """Keys of one test alone."""
    return f"/{request.node.originalname}/".encode()


def transact(
    store: EtcdSubject, compares: list[Compare], operations: list[Operation]
) -> EtcdAnswer:
    return store.end_of(store.door.begin_transaction(compares, operations))


def put(store: EtcdSubject, *operations: Operation) -> int:
    """Do these operations and return the revision."""
    answer = transact(store, [], list(operations))
    assert isinstance(answer, TransactionEnded)
    return answer.revision


def rows(store: EtcdSubject, prefix: bytes) -> list[Row]:
    answer = store.end_of(store.door.begin_read(prefix))
    assert isinstance(answer, RowsRead)
    return answer.rows


def grant(store: EtcdSubject, ttl_ms: int = 60_000) -> int:
    answer = store.end_of(store.door.begin_grant(ttl_ms))
    assert isinstance(answer, LeaseGranted)
    return answer.lease_id


def test_a_transaction_is_done_as_a_whole_if_all_compares_hold(
    store: EtcdSubject, prefix: bytes
) -> None:
    first, second = prefix + b"1", prefix + b"2"
    absent = [Compare(first, "create", 0), Compare(second, "mod", 0)]

    made = transact(store, absent, [Put(first, b"a"), Put(second, b"b")])
    again = transact(store, absent, [Put(first, b"c"), Put(second, b"d")])

    assert isinstance(made, TransactionEnded)
    assert made.is_done
    assert again == TransactionEnded(again.call_id, is_done=False, revision=made.revision)
    assert rows(store, prefix) == [
        Row(first, b"a", made.revision, made.revision),
        Row(second, b"b", made.revision, made.revision),
    ]


def test_a_compare_of_a_prefix_holds_while_nothing_below_it_is_newer(
    store: EtcdSubject, prefix: bytes
) -> None:
    below, beside = prefix + b"a/", prefix + b"b"
    transacted: list[bool] = []

    def holds(revision: int) -> bool:
        answer = transact(store, [Compare(below, "newest", revision)], [Put(beside, b"")])
        assert isinstance(answer, TransactionEnded)
        return answer.is_done

    transacted.append(holds(0))
    first = put(store, Put(below + b"1", b""))
    transacted += [holds(first - 1), holds(first)]
    second = put(store, Put(below + b"2", b""))
    transacted += [holds(first), holds(second)]
    put(store, Remove(below + b"2"))
    transacted.append(holds(first))

    assert transacted == [True, False, True, False, True, True]


def test_compares_are_of_creation_and_of_the_newest_value(
    store: EtcdSubject, prefix: bytes
) -> None:
    key = prefix + b"k"
    created = put(store, Put(key, b"1"))
    changed = put(store, Put(key, b"2"))
    cases = [
        (Compare(key, "create", created), True),
        (Compare(key, "create", changed), False),
        (Compare(key, "mod", changed), True),
        (Compare(key, "mod", created), False),
        (Compare(key, "create", changed, is_equal=False), True),
        (Compare(key, "mod", changed, is_equal=False), False),
        (Compare(prefix + b"absent", "mod", 0), True),
        (Compare(prefix + b"absent", "create", 7, is_equal=False), True),
    ]

    answers = [transact(store, [compare], []) for compare, _ in cases]

    assert [answer.is_done for answer in answers if isinstance(answer, TransactionEnded)] == [
        wanted for _, wanted in cases
    ]


def test_a_key_that_was_removed_is_created_anew(store: EtcdSubject, prefix: bytes) -> None:
    key = prefix + b"k"
    first = put(store, Put(key, b"1"))
    removed = put(store, Remove(key))
    second = put(store, Put(key, b"2"))

    assert first < removed < second
    assert rows(store, prefix) == [Row(key, b"2", second, second)]


def test_removing_what_is_not_there_makes_no_revision(store: EtcdSubject, prefix: bytes) -> None:
    before = put(store, Put(prefix + b"k", b"1"))

    assert put(store, Remove(prefix + b"absent")) == before


@pytest.mark.parametrize("kind", ["operations", "compares", "doubled"])
def test_what_etcd_refuses_is_not_done_for_sure(
    store: EtcdSubject, prefix: bytes, kind: str
) -> None:
    key = prefix + kind.encode()
    compares = [Compare(key, "mod", 0)] * (129 if kind == "compares" else 1)
    operations: list[Operation] = [Put(key, b"1")]
    if kind == "operations":
        operations = [Put(b"%s %d" % (key, number), b"") for number in range(129)]
    if kind == "doubled":
        operations *= 2

    answer = transact(store, compares, operations)

    assert isinstance(answer, CallFailed)
    assert not answer.is_unknown
    assert rows(store, key) == []


def test_128_compares_and_operations_are_allowed(store: EtcdSubject, prefix: bytes) -> None:
    keys = [b"%s%03d" % (prefix, number) for number in range(128)]

    answer = transact(
        store, [Compare(key, "mod", 0) for key in keys], [Put(key, b"x") for key in keys]
    )

    assert isinstance(answer, TransactionEnded)
    assert [row.key for row in rows(store, prefix)] == keys


def test_many_rows_are_read_at_one_revision(store: EtcdSubject, prefix: bytes) -> None:
    keys = [b"%s%05d" % (prefix, number) for number in range(4_100)]
    for begin in range(0, len(keys), 100):
        last = put(store, *[Put(key, b"x" * 50) for key in keys[begin : begin + 100]])
    reading = store.door.begin_read(prefix)
    writing = store.door.begin_transaction([], [Put(prefix + b"later", b"x")])

    answer = store.end_of(reading)
    store.end_of(writing)

    assert isinstance(answer, RowsRead)
    at_least = [row.key for row in answer.rows if row.mod_revision <= last]
    assert at_least == keys
    assert all(row.mod_revision <= answer.revision for row in answer.rows)


def tally(
    store: EtcdSubject, prefix: bytes, from_revision: int, at_revision: int
) -> tuple[int, dict[bytes, int]]:
    answer = store.end_of(store.door.begin_tally(prefix, from_revision, at_revision))
    assert isinstance(answer, RowsTallied)
    return answer.count, answer.changed


def test_a_tally_counts_all_rows_and_names_those_put_since(
    store: EtcdSubject, prefix: bytes
) -> None:
    one, two, three = prefix + b"1", prefix + b"2", prefix + b"3"
    nothing = put(store, Put(prefix[:-1] + b"~", b"of nobody here"))
    first = put(store, Put(one, b"x"), Put(two, b"x"), Put(three, b"x"))
    second = put(store, Put(two, b"y"), Remove(three))
    last = put(store, Put(prefix[:-1] + b"~", b"of nobody here"))

    assert tally(store, prefix, 0, nothing) == (0, {})
    assert tally(store, prefix, 0, first) == (3, dict.fromkeys((one, two, three), first))
    assert tally(store, prefix, 0, second) == (2, {one: first, two: second})
    assert tally(store, prefix, second, last) == (2, {two: second})
    assert tally(store, prefix, last, last) == (2, {})
    store.compact(last)
    assert isinstance(store.end_of(store.door.begin_tally(prefix, 0, first)), CallFailed)
    assert tally(store, prefix, 0, last) == (2, {one: first, two: second})


def test_a_tally_of_many_names_the_oldest(store: EtcdSubject, prefix: bytes) -> None:
    keys = [b"%s%05d" % (prefix, number) for number in range(TALLIED_MAX + 100)]
    revisions = [
        put(store, *[Put(key, b"x") for key in keys[begin : begin + 100]])
        for begin in range(0, len(keys), 100)
    ]
    last = put(store, Put(keys[0], b"y"))

    count, changed = tally(store, prefix, revisions[0], last)

    assert (count, len(changed)) == (len(keys), TALLIED_MAX)
    assert keys[0] not in changed
    assert max(changed.values()) == revisions[-1]


def test_the_keys_of_a_lease_go_with_it_in_one_revision(store: EtcdSubject, prefix: bytes) -> None:
    lease_id = grant(store)
    keys = [prefix + b"1", prefix + b"2"]
    made = put(store, *[Put(key, b"", lease_id) for key in keys], Put(prefix + b"stays", b""))
    watch = store.door.watch(prefix, made + 1)

    ended = store.end_of(store.door.begin_revoke(lease_id))

    assert isinstance(ended, LeaseRevoked)
    (seen,) = store.seen_until(watch, made + 1)
    assert sorted(each.key for each in seen.changes) == keys
    assert all(isinstance(each, Removed) for each in seen.changes)
    assert [row.key for row in rows(store, prefix)] == [prefix + b"stays"]
    store.door.cancel(watch)


def test_a_key_that_is_put_without_its_lease_stays(store: EtcdSubject, prefix: bytes) -> None:
    key = prefix + b"k"
    lease_id = grant(store)
    put(store, Put(key, b"1", lease_id))
    put(store, Put(key, b"2"))

    store.end_of(store.door.begin_revoke(lease_id))

    assert [(row.value, row.lease_id) for row in rows(store, prefix)] == [(b"2", 0)]


def test_a_key_that_is_put_again_with_its_lease_keeps_its_creation(
    store: EtcdSubject, prefix: bytes
) -> None:
    key = prefix + b"k"
    lease_id = grant(store)
    created = put(store, Put(key, b"1", lease_id))
    changed = put(store, Put(key, b"2", lease_id))

    assert rows(store, prefix) == [Row(key, b"2", created, changed, lease_id)]


def test_a_lease_that_nobody_renews_ends(store: EtcdSubject, prefix: bytes) -> None:
    lease_id = grant(store, 1_500)
    key = prefix + b"k"
    made = put(store, Put(key, b"", lease_id))
    watch = store.door.watch(prefix, made + 1)

    store.outlive(2_000)

    seen = store.end_of(watch)
    assert isinstance(seen, RevisionSeen)
    assert [each.key for each in seen.changes] == [key]
    renewed = store.end_of(store.door.begin_renew(lease_id))
    assert isinstance(renewed, LeaseRenewed)
    assert renewed.ttl_ms == 0
    store.door.cancel(watch)


def test_leases_are_of_whole_seconds_at_least_as_long_as_asked_for(store: EtcdSubject) -> None:
    granted = store.end_of(store.door.begin_grant(6_001))
    assert isinstance(granted, LeaseGranted)

    renewed = store.end_of(store.door.begin_renew(granted.lease_id))

    assert granted.ttl_ms == 7_000
    assert isinstance(renewed, LeaseRenewed)
    assert renewed.ttl_ms == 7_000


def test_a_lease_that_is_over_or_was_never_there(store: EtcdSubject, prefix: bytes) -> None:
    lease_id = grant(store)
    store.end_of(store.door.begin_revoke(lease_id))

    put_again = transact(store, [], [Put(prefix + b"k", b"", lease_id)])

    assert isinstance(store.end_of(store.door.begin_revoke(lease_id)), LeaseRevoked)
    assert isinstance(put_again, CallFailed)
    assert not put_again.is_unknown
    assert rows(store, prefix) == []


def test_a_watch_tells_of_each_revision_from_the_one_asked_for(
    store: EtcdSubject, prefix: bytes
) -> None:
    first = put(store, Put(prefix + b"1", b"a"), Put(prefix + b"2", b"b"))
    put(store, Put(b"/elsewhere", b""))
    watch = store.door.watch(prefix, first)
    second = put(store, Remove(prefix + b"1"), Put(prefix + b"3", b"c"))

    seen = store.seen_until(watch, second)

    assert [(each.revision, each.changes) for each in seen] == [
        (first, [Row(prefix + b"1", b"a", first, first), Row(prefix + b"2", b"b", first, first)]),
        (second, [Removed(prefix + b"1", second), Row(prefix + b"3", b"c", second, second)]),
    ]
    store.door.cancel(watch)


def test_a_watch_goes_on_where_another_one_ended(store: EtcdSubject, prefix: bytes) -> None:
    watch = store.door.watch(prefix, put(store, Put(prefix + b"k", b"0")) + 1)
    told = store.seen_until(watch, put(store, Put(prefix + b"k", b"1")))
    store.door.cancel(watch)
    store.end_of_watch(watch)
    last = put(store, Put(prefix + b"k", b"2"))

    again = store.door.watch(prefix, told[-1].revision + 1)

    seen = store.seen_until(again, last)
    assert [change.mod_revision for each in seen for change in each.changes] == [last]
    store.door.cancel(again)


def test_a_large_revision_comes_whole(
    store: EtcdSubject, prefix: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """etcd sends in fragments what a watch has missed, if it is more than 2 MiB."""
    fragments = []
    honest = Watching.read

    def read(self: Watching, data: bytes) -> list[EtcdAnswer]:
        fragments.append(pb.WatchResponse.FromString(data).fragment)
        return honest(self, data)

    monkeypatch.setattr(Watching, "read", read)
    first = put(store, Put(prefix + b"k", b"0")) + 1
    keys = [b"%s%02d" % (prefix, number) for number in range(20)]
    revisions = [put(store, *[Put(key, b"x" * 60_000) for key in keys]) for _ in range(4)]

    watch = store.door.watch(prefix, first)
    seen = store.seen_until(watch, revisions[-1])

    assert [each.revision for each in seen] == revisions
    assert [[change.key for change in each.changes] for each in seen] == [keys] * 4
    assert any(fragments) or isinstance(store, SimulatedSubject)
    store.door.cancel(watch)


def test_progress_names_a_revision_of_which_all_was_told(store: EtcdSubject, prefix: bytes) -> None:
    last = put(store, Put(prefix + b"k", b"0"))
    watch = store.door.watch(prefix, last)
    store.seen_until(watch, last)
    elsewhere = put(store, Put(b"/elsewhere", b""))

    seen = RevisionSeen(watch, 0, [])
    while seen.revision < elsewhere:
        store.door.ask_progress()
        answer = store.end_of(watch)
        assert isinstance(answer, RevisionSeen)
        seen = answer

    assert seen.changes == []
    store.door.cancel(watch)


def test_a_watch_from_what_was_compacted_away_ends_and_says_so(
    store: EtcdSubject, prefix: bytes
) -> None:
    first = put(store, Put(prefix + b"k", b"0"))
    second = put(store, Put(prefix + b"k", b"1"))
    third = put(store, Put(prefix + b"k", b"2"))
    store.compact(second)

    ended = store.end_of_watch(store.door.watch(prefix, first))
    going_on = store.door.watch(prefix, second)

    assert ended.compact_revision == second
    assert [each.revision for each in store.seen_until(going_on, third)] == [second, third]
    store.door.cancel(going_on)


def test_a_lost_link_ends_watches_and_leaves_calls_unknown(
    store: EtcdSubject, prefix: bytes
) -> None:
    watch = store.door.watch(prefix, put(store, Put(prefix + b"k", b"0")) + 1)
    call = store.door.begin_transaction([], [Put(prefix + b"k", b"1")])

    store.lose_link()

    ended = store.end_of(call)
    assert isinstance(ended, TransactionEnded) or (
        isinstance(ended, CallFailed) and ended.is_unknown
    )
    store.end_of_watch(watch)


def test_a_store_that_is_away_says_that_nothing_was_done(store: EtcdSubject, prefix: bytes) -> None:
    before = put(store, Put(prefix + b"k", b"0"))
    store.go_away()
    # The first call may find the link just lost.
    store.end_of(store.door.begin_read(prefix))

    call = store.end_of(store.door.begin_transaction([], [Put(prefix + b"k", b"1")]))
    watch = store.end_of_watch(store.door.watch(prefix, 1))

    assert isinstance(call, CallFailed)
    assert not call.is_unknown
    assert watch.compact_revision == 0
    store.come_back()
    assert [row.mod_revision for row in rows(store, prefix)] == [before]


def test_a_cancelled_call_ends_at_once_and_may_have_been_done(
    store: EtcdSubject, prefix: bytes
) -> None:
    rows(store, prefix)
    call = store.door.begin_transaction([], [Put(prefix + b"k", b"1")])

    store.door.cancel(call)

    ended = store.end_of(call)
    assert isinstance(ended, CallFailed)
    assert ended.is_unknown
    assert [row.value for row in rows(store, prefix)] in ([], [b"1"])


def test_a_member_tells_its_release_and_its_cluster(store: EtcdSubject) -> None:
    one = store.end_of(store.door.begin_status())
    two = store.end_of(store.door.begin_status())

    assert isinstance(one, StatusRead)
    assert isinstance(two, StatusRead)
    assert one.version.count(".") == 2
    assert one.etcd_cluster_id == two.etcd_cluster_id != 0
    assert one.alarms == []
    if isinstance(store, RealSubject):
        assert 0 < one.used_bytes <= one.size_bytes
        # Release 3.5 does not tell it.
        assert one.quota_bytes > one.size_bytes or one.version.startswith("3.5.")


def test_a_removal_by_prefix_takes_all_keys_below_it_and_no_other(
    store: EtcdSubject, prefix: bytes
) -> None:
    below = [prefix + b"a/1", prefix + b"a/2", prefix + b"a/3/4"]
    others = [prefix + b"a", prefix + b"b/1"]
    made = put(store, *(Put(key, b"v") for key in (*below, *others)))
    removed = put(store, Remove(prefix + b"a/", is_prefix=True), Put(prefix + b"b/2", b"v"))
    put(store, Remove(prefix + b"a/", is_prefix=True))

    assert [row.key for row in rows(store, prefix)] == [*others, prefix + b"b/2"]
    watch = store.door.watch(prefix, made + 1)
    seen = store.seen_until(watch, removed)
    gone = [change.key for change in seen[0].changes if isinstance(change, Removed)]
    assert sorted(gone) == below
