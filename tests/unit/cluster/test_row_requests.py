"""Elections, reassignments and unregistration that operators ask for, as tables of decisions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.support.cluster import row_scene as scenes

from tarry.base import errors
from tarry.base.etcd import Compare, Operation, Put
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.elections import ElectionWish, elect_preferred, elect_uncleanly
from tarry.cluster.decisions.reassignments import (
    FinishReassignments,
    ReassignmentWish,
    begin_reassignment,
    cancel_reassignment,
    finish_reassignment,
    target_of,
)
from tarry.cluster.decisions.replica_choice import Refusal, rows_as_made
from tarry.cluster.decisions.row_changes import LifeGuard
from tarry.cluster.decisions.row_requests import ROWS_MAX, RowWish, RowWishes
from tarry.cluster.decisions.unregistration import Unregistration
from tarry.cluster.etcd.transactions import ConditionalChange, Transaction
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import ROW_FORMAT, BrokerRow, Keys, LifeRow, encode_row
from tarry.cluster.state.records import (
    BrokerDescribed,
    BrokerRegistered,
    BrokerUnregistered,
    DeletionPending,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state.state import ClusterState
from tarry.simulation.etcd import SimulatedEtcd

TOPIC_ID = bytes(range(16))
SERVING = dict.fromkeys((1, 2, 3, 4), "serving")


def cluster(phases: dict[int, str], *rows: PartitionRow) -> ClusterState:
    """Brokers in these phases, "" for no life; the epoch of broker n is 10 + n."""
    state = ClusterState()
    for broker_id, phase in phases.items():
        state.apply(BrokerRegistered(broker_id=broker_id))
        state.apply(BrokerDescribed(broker_id=broker_id, directory_id="d", rack="", endpoints={}))
        if phase:
            state.apply(LifeChanged(broker_id=broker_id, broker_epoch=10 + broker_id, phase=phase))
    state.apply(TopicCreated(topic_id=TOPIC_ID, name="t", partitions=list(rows), configs={}))
    return state


def row(
    leader: int,
    replicas: list[int],
    isr: list[int],
    *,
    life: int | None = None,
    adding: list[int] | None = None,
    removing: list[int] | None = None,
) -> PartitionRow:
    epoch = 10 + leader if life is None else life
    return PartitionRow(leader, 5, epoch, 9, replicas, isr, adding or [], removing or [])


def shown(after: PartitionRow) -> tuple[object, ...]:
    return (after.leader_id, after.leader_epoch, after.replicas, after.isr, after.broker_epoch)


# -- elections


@pytest.mark.parametrize(
    ("phases", "before", "error_code"),
    [
        (SERVING, row(1, [1, 2], [1, 2]), errors.ELECTION_NOT_NEEDED),
        (SERVING, row(2, [1, 2], [2]), errors.PREFERRED_LEADER_NOT_AVAILABLE),
        ({**SERVING, 1: ""}, row(2, [1, 2], [1, 2]), errors.PREFERRED_LEADER_NOT_AVAILABLE),
        ({**SERVING, 1: "starting"}, row(2, [1, 2], [1, 2]), errors.PREFERRED_LEADER_NOT_AVAILABLE),
        ({**SERVING, 1: "leaving"}, row(2, [1, 2], [1, 2]), errors.PREFERRED_LEADER_NOT_AVAILABLE),
        (SERVING, row(2, [], []), errors.PREFERRED_LEADER_NOT_AVAILABLE),
        # Nobody leads: who is in sync and whole claims it by itself.
        (SERVING, row(2, [1, 2], [2, 1], life=7), errors.PREFERRED_LEADER_NOT_AVAILABLE),
        (SERVING, row(1, [1, 2], [1], life=7), errors.PREFERRED_LEADER_NOT_AVAILABLE),
    ],
)
def test_a_preferred_leader_is_refused(
    phases: dict[int, str], before: PartitionRow, error_code: int
) -> None:
    with pytest.raises(Refusal) as refused:
        elect_preferred(cluster(phases, before), before)

    assert refused.value.error_code == error_code


def test_the_preferred_leader_leads_in_the_next_epoch_if_it_still_lives() -> None:
    before = row(2, [1, 2], [2, 1])

    after, guards = elect_preferred(cluster(SERVING, before), before)

    assert shown(after) == (1, 6, [1, 2], [2, 1], 11)
    assert (after.partition_epoch, after.unclean_epoch) == (10, -1)
    assert guards == [LifeGuard(1, 11, is_over=False)]


@pytest.mark.parametrize(
    ("phases", "before", "elected", "of_a_cache"),
    [
        ({**SERVING, 1: ""}, row(1, [1, 2, 3], [1]), 2, 2),
        ({**SERVING, 1: "", 2: "starting"}, row(1, [1, 2, 3], [1]), 3, 3),
        # In sync, and not whole: its disk has lost what was flushed, or a few seconds of a cache.
        (SERVING, row(3, [1, 2, 3], [3], life=7), 1, 3),
        ({3: "serving"}, row(3, [1, 2, 3], [3], life=7), 3, 3),
        # In sync, and perhaps about to claim it.
        (SERVING, row(1, [1, 2, 3], [3], life=7), 3, 3),
        (SERVING, row(3, [1, 2, 3], [3, 2], life=7), 2, 2),
    ],
)
@pytest.mark.parametrize("is_flushed", [True, False])
def test_an_unclean_election_takes_who_is_in_sync_and_else_the_first_that_serves(
    phases: dict[int, str],
    before: PartitionRow,
    elected: int,
    of_a_cache: int,
    is_flushed: bool,
) -> None:
    state = cluster(phases, before)
    elected = elected if is_flushed else of_a_cache

    after, guards = elect_uncleanly(state, before, is_flushed=is_flushed)

    assert shown(after) == (elected, 6, [1, 2, 3], [elected], 10 + elected)
    assert after.unclean_epoch == 6
    assert guards == [LifeGuard(elected, 10 + elected, is_over=False)]


@pytest.mark.parametrize(
    ("phases", "before", "error_code"),
    [
        (SERVING, row(1, [1, 2], [1]), errors.ELECTION_NOT_NEEDED),
        ({1: "", 2: ""}, row(1, [1, 2], [1]), errors.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_an_unclean_election_is_refused(
    phases: dict[int, str], before: PartitionRow, error_code: int
) -> None:
    with pytest.raises(Refusal) as refused:
        elect_uncleanly(cluster(phases, before), before, is_flushed=True)

    assert refused.value.error_code == error_code


# -- reassignments


@pytest.mark.parametrize(
    ("before", "target", "replicas", "adding", "removing"),
    [
        (row(1, [1, 2], [1, 2]), [3, 4], [3, 4, 1, 2], [3, 4], [1, 2]),
        (row(1, [1, 2], [1, 2]), [2, 3], [2, 3, 1], [3], [1]),
        (row(1, [1, 2], [1, 2]), [1, 2, 3], [1, 2, 3], [3], []),
        (row(1, [1, 2, 3], [1]), [1, 2], [1, 2, 3], [], [3]),
        # In the place of one that is under way: 3 was to come, and goes again.
        (
            row(1, [3, 1, 2], [1, 2], adding=[3], removing=[2]),
            [4, 1],
            [4, 1, 3, 2],
            [4, 3],
            [3, 2],
        ),
    ],
)
def test_a_reassignment_begins_with_all_replicas(
    before: PartitionRow,
    target: list[int],
    replicas: list[int],
    adding: list[int],
    removing: list[int],
) -> None:
    decision = begin_reassignment(cluster(SERVING, before), before, target)

    assert decision is not None
    after = decision.row
    assert (after.replicas, after.adding, after.removing) == (replicas, adding, removing)
    assert target_of(after) == target
    assert (after.leader_id, after.leader_epoch, after.isr) == (1, 5, before.isr)
    assert after.partition_epoch == 10
    added = [each for each in target if each not in before.replicas]
    assert decision.guards == [LifeGuard(each, 10 + each, is_over=False) for each in added]


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (row(1, [1, 2, 3], [1, 2, 3]), [1, 2], (1, 6, [1, 2], [1, 2], 11)),
        (row(1, [1, 2], [1, 2]), [2, 1], (1, 5, [2, 1], [1, 2], 11)),
        (row(1, [1, 2], [1, 2]), [2], (2, 6, [2], [2], 12)),
    ],
    ids=["fewer", "order", "without the leader"],
)
def test_what_is_in_sync_already_is_reassigned_at_once(
    before: PartitionRow, target: list[int], after: tuple[object, ...]
) -> None:
    decision = begin_reassignment(cluster(SERVING, before), before, target)

    assert decision is not None
    assert shown(decision.row) == after
    assert (decision.row.adding, decision.row.removing) == ([], [])
    assert decision.row.partition_epoch == 10
    assert bool(decision.guards) == (after[0] != 1)


def test_a_reassignment_to_what_is_there_changes_nothing() -> None:
    idle = row(1, [1, 2], [1])
    under_way = row(1, [3, 1, 2], [1, 2], adding=[3], removing=[1, 2])

    assert begin_reassignment(cluster(SERVING, idle), idle, [1, 2]) is None
    assert begin_reassignment(cluster(SERVING, under_way), under_way, [3]) is None


@pytest.mark.parametrize(
    ("phases", "before", "after"),
    [
        (SERVING, row(1, [3, 4, 1, 2], [1, 2, 3], adding=[3, 4], removing=[1, 2]), None),
        (
            SERVING,
            row(1, [3, 4, 1, 2], [1, 2, 3, 4], adding=[3, 4], removing=[1, 2]),
            (3, 6, [3, 4], [3, 4], 13),
        ),
        (
            {**SERVING, 3: ""},
            row(1, [3, 4, 1], [1, 3, 4], adding=[3, 4], removing=[1]),
            (4, 6, [3, 4], [3, 4], 14),
        ),
        ({**SERVING, 3: ""}, row(1, [3, 1], [1, 3], adding=[3], removing=[1]), None),
        # Who is left out removes its data: no fetch from before may count if it comes back.
        (SERVING, row(1, [3, 1, 2], [1, 3], adding=[3], removing=[2]), (1, 6, [3, 1], [1, 3], 11)),
        (SERVING, row(1, [3, 1], [1, 3], adding=[3]), (1, 5, [3, 1], [1, 3], 11)),
        (SERVING, row(1, [1, 2], [1, 2]), None),
    ],
)
def test_a_reassignment_ends_once_its_target_is_in_sync(
    phases: dict[int, str], before: PartitionRow, after: tuple[object, ...] | None
) -> None:
    finished = finish_reassignment(cluster(phases, before), before)

    assert (None if finished is None else shown(finished)) == after
    if finished is not None:
        assert (finished.adding, finished.removing, finished.partition_epoch) == ([], [], 10)


@pytest.mark.parametrize(
    ("configs", "phases", "before", "after"),
    [
        (
            {},
            SERVING,
            row(1, [3, 1, 2], [1, 2, 3], adding=[3], removing=[2]),
            (1, 6, [1, 2], [1, 2], 11),
        ),
        ({}, SERVING, row(1, [1, 2], [1, 2], removing=[2]), (1, 5, [1, 2], [1, 2], 11)),
        # A new one leads: an old one takes over.
        (
            {},
            SERVING,
            row(3, [3, 1, 2], [2, 3], adding=[3], removing=[1, 2]),
            (2, 6, [1, 2], [2], 12),
        ),
        (
            {},
            SERVING,
            row(3, [3, 1], [3], adding=[3], removing=[1]),
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {},
            {**SERVING, 2: ""},
            row(3, [3, 2], [2, 3], adding=[3], removing=[2]),
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
        # Nobody leads, and who is in sync does not claim it: its log is not whole.
        (
            {},
            SERVING,
            row(3, [3, 1, 2], [2], life=7, adding=[3], removing=[1]),
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
        # Acknowledged records would be on fewer disks than min.insync.replicas.
        (
            {"min.insync.replicas": "2"},
            SERVING,
            row(1, [3, 1, 2], [1, 3], adding=[3], removing=[2]),
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
        ({}, SERVING, row(1, [1, 2], [1, 2]), errors.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_a_reassignment_is_cancelled(
    configs: dict[str, str],
    phases: dict[int, str],
    before: PartitionRow,
    after: tuple[object, ...] | int,
) -> None:
    state = cluster(phases, before)
    topic = state.topics["t"]

    try:
        decision = cancel_reassignment(state, topic, before, Settings(configs))
    except Refusal as refusal:
        assert refusal.error_code == after
    else:
        assert shown(decision.row) == after
        assert (decision.row.adding, decision.row.removing) == ([], [])


@pytest.mark.parametrize(
    ("target", "error_code", "sentence"),
    [
        ([], errors.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
        ([1, 9], errors.INVALID_REPLICA_ASSIGNMENT, "broker 9, which is not registered"),
        ([-1], errors.INVALID_REPLICA_ASSIGNMENT, "broker -1, which is not registered"),
        ([2, 2], errors.INVALID_REPLICA_ASSIGNMENT, "broker 2 twice"),
        ([3], errors.INVALID_REPLICATION_FACTOR, "2 replicas and is to have 1"),
    ],
)
def test_a_wrong_target_is_refused(target: list[int], error_code: int, sentence: str) -> None:
    state = cluster(SERVING, row(1, [1, 2], [1, 2]))
    wish = ReassignmentWish("t", 0, target, Settings({}), may_change_factor=False)

    assert RowWishes([wish]).next_change().decide(state) == []

    assert wish.error_code == error_code
    assert sentence in (wish.message or "")


# -- several in one request


def granted(state: ClusterState, wishes: list[RowWish]) -> list[int]:
    """Grant wishes; return how many rows each transaction had."""
    series = RowWishes(wishes)
    sizes = []
    while not series.are_done:
        change = series.next_change()
        records = change.decide(state)
        for record in records:
            state.apply(record)
        sizes.append(len(records))
        series.take(change)
    return sizes


def preferred(topic: str, index: int) -> ElectionWish:
    return ElectionWish(topic, index, Settings({}), is_unclean=False)


def test_many_partitions_are_changed_in_several_transactions() -> None:
    state = cluster(SERVING, *[row(2, [1, 2], [1, 2])] * 300)
    wishes: list[RowWish] = [preferred("t", index) for index in range(300)]

    assert granted(state, wishes) == [ROWS_MAX, ROWS_MAX, 300 - 2 * ROWS_MAX]
    assert {wish.error_code for wish in wishes} == {errors.NONE}
    assert {each.leader_id for each in state.topics["t"].partitions} == {1}


def test_a_transaction_has_no_more_compares_than_etcd_takes() -> None:
    replicas = [[1 + index % 4, 9] for index in range(130)]
    phases = {**SERVING, 9: "serving"}
    state = cluster(phases, *[row(9, each, [*each]) for each in replicas])
    change = RowWishes([preferred("t", index) for index in range(130)]).next_change()
    transaction = Transaction(KnownRows(Keys("/t/")))
    for record in change.decide(state):
        transaction.add(record)
    change.guard(transaction)

    assert len(transaction.compares) <= 128
    assert len(transaction.operations) > 100


def test_what_is_unknown_is_refused_and_the_rest_is_done() -> None:
    state = cluster(SERVING, row(2, [1, 2], [1, 2]))
    places = [("t", 1), ("t", -1), ("nope", 0), ("t", 0)]
    wishes: list[RowWish] = [preferred(*place) for place in places]

    assert granted(state, wishes) == [1]
    assert [wish.error_code for wish in wishes] == [errors.UNKNOWN_TOPIC_OR_PARTITION] * 3 + [0]


def test_a_deed_of_unknown_outcome_is_known_again() -> None:
    state = cluster(SERVING, row(2, [1, 2], [1, 2]))
    wish = preferred("t", 0)
    change = RowWishes([wish]).next_change()
    (record,) = change.decide(state)
    state.apply(record)

    assert change.decide(state) == []
    assert wish.error_code == errors.NONE


def test_a_failure_leaves_what_is_done_and_fails_what_is_not() -> None:
    state = cluster(SERVING, *[row(2, [1, 2], [1, 2])] * 300)
    wishes: list[RowWish] = [preferred("t", index) for index in range(300)]
    wishes.append(preferred("nope", 0))
    series = RowWishes(wishes)
    first = series.next_change()
    assert len(first.decide(state)) == ROWS_MAX
    series.take(first)

    second = series.next_change()
    second.decide(state)
    series.fail(second, errors.REQUEST_TIMED_OUT, "late")

    assert series.are_done
    codes = [wish.error_code for wish in wishes]
    assert codes == [errors.NONE] * ROWS_MAX + [errors.REQUEST_TIMED_OUT] * (301 - ROWS_MAX)


def test_only_the_leader_in_its_life_ends_reassignments_and_only_those_named() -> None:
    done = row(1, [3, 1], [1, 3], adding=[3], removing=[1])
    stays = row(1, [1, 3], [1, 3], adding=[3])
    known = KnownRows(Keys("/t/"))
    state = cluster(SERVING, done, done, row(2, [3, 2], [2, 3], adding=[3], removing=[2]), stays)

    def finished(broker_id: int, epoch: int, *indexes: int) -> list[int]:
        places = [(TOPIC_ID, index) for index in indexes]
        change = FinishReassignments(known, broker_id, epoch, places)
        records = change.decide(state)
        assert all(isinstance(record, PartitionChanged) for record in records)
        return [record.index for record in records if isinstance(record, PartitionChanged)]

    assert finished(1, 11, 0, 2) == [0]
    assert finished(1, 11, 0, 1, 2, 3) == [0, 1, 3]
    assert finished(1, 7, 0, 1, 2) == []

    # A transaction would fail for as long as it was tried: it rests on a life that is over.
    state.apply(LifeEnded(broker_id=1))
    assert finished(1, 11, 0, 1, 2, 3) == []


# -- unregistration


def unregistered(
    state: ClusterState, broker_id: int
) -> tuple[Unregistration, list[MetadataRecord]]:
    change = Unregistration(broker_id)
    return change, change.decide(state)


@pytest.mark.parametrize(
    ("broker_id", "error_code", "sentence"),
    [
        (9, errors.BROKER_ID_NOT_REGISTERED, "no broker 9"),
        (1, errors.INVALID_REQUEST, "broker 1 lives: stop it first"),
        (3, errors.INVALID_REQUEST, "has replicas of 2 partitions, t-0 among them"),
    ],
)
def test_who_may_still_have_something_stays_registered(
    broker_id: int, error_code: int, sentence: str
) -> None:
    state = cluster({1: "serving", 3: ""}, row(1, [1, 3], [1]), row(1, [1, 3], [1]))

    change, records = unregistered(state, broker_id)

    assert records == []
    assert (change.error_code, change.is_last) == (error_code, True)
    assert sentence in (change.message or "")


def test_a_dead_broker_without_replicas_goes_and_nobody_waits_for_its_data() -> None:
    state = cluster({1: "serving", 3: ""}, row(1, [1], [1]))
    alone, shared = b"a" * 16, b"b" * 16
    for topic_id in (alone, shared):
        made = TopicCreated(
            topic_id=topic_id, name=f"old-{topic_id[:1]!r}", partitions=[], configs={}
        )
        state.apply(made)
        state.apply(TopicDeleted(topic_id=topic_id))
    state.apply(DeletionPending(topic_id=alone, broker_ids=[3]))
    state.apply(DeletionPending(topic_id=shared, broker_ids=[1, 3]))

    change, records = unregistered(state, 3)

    assert records == [
        TopicRemoved(topic_id=alone),
        DeletionPending(topic_id=shared, broker_ids=[1]),
        BrokerUnregistered(broker_id=3),
    ]
    assert change.is_last
    for record in records:
        state.apply(record)
    assert state.broker_ids == [1]
    assert 3 not in state.brokers
    assert change.decide(state) == []
    assert change.error_code == errors.NONE, "its own deed, though its outcome was unknown"


def test_a_broker_that_lives_again_is_not_unregistered() -> None:
    keys = Keys("/t/")
    etcd = SimulatedEtcd(Random(3))
    etcd.transact([], [Put(keys.broker(3), encode_row(BrokerRow(ROW_FORMAT, "", "", {}, "")))])
    known = KnownRows(keys)
    state = ClusterState()
    for record in known.apply(known.difference(etcd.rows(keys.prefix))):
        state.apply(record)
    change, records = unregistered(state, 3)
    transaction = Transaction(known)
    for record in records:
        transaction.add(record)
    change.guard(transaction)

    life = Put(keys.life(3), encode_row(LifeRow(ROW_FORMAT, "", 0, "serving")))
    etcd.transact([], [life])
    assert not etcd.transact(transaction.compares, transaction.operations)[0]
    etcd._remove([keys.life(3)])
    assert etcd.transact(transaction.compares, transaction.operations)[0]

    for record in known.apply(known.difference(etcd.rows(keys.prefix))):
        state.apply(record)
    assert state.broker_ids == []


def new_topic(view: ClusterState) -> tuple[list[MetadataRecord], ConditionalChange | None]:
    rows = rows_as_made(view, [[1, 3]])
    return [TopicCreated(topic_id=b"n" * 16, name="new", partitions=rows, configs={})], None


def new_partition(view: ClusterState) -> tuple[list[MetadataRecord], ConditionalChange | None]:
    rows = rows_as_made(view, [[1, 3]])
    return [PartitionsAdded(topic_id=scenes.TOPIC_ID, partitions=rows)], None


def new_replica(view: ClusterState) -> tuple[list[MetadataRecord], ConditionalChange | None]:
    change = RowWishes([ReassignmentWish("orders", 0, [1, 3], Settings({}))]).next_change()
    return change.decide(view), change


@pytest.mark.parametrize("is_unregistered_first", [False, True])
@pytest.mark.parametrize("assign", [new_topic, new_partition, new_replica])
@pytest.mark.parametrize("lives_meanwhile", [False, True])
def test_of_an_assignment_and_an_unregistration_decided_at_once_one_fails(
    assign: Callable[[ClusterState], tuple[list[MetadataRecord], ConditionalChange | None]],
    *,
    is_unregistered_first: bool,
    lives_meanwhile: bool,
) -> None:
    scene = scenes.Rows()
    for broker_id in (1, 3):
        scene.live(broker_id)
    scene.topic([[1]])
    scene.die(3)
    scene.hear()
    unregistration = Unregistration(3)
    first = transaction_of(scene, unregistration.decide(scene.state), unregistration)
    if lives_meanwhile:
        # The one that asks has heard of it.
        scene.live(3)
        scene.hear()
    second = transaction_of(scene, *assign(scene.state))
    if lives_meanwhile and not is_unregistered_first:
        assert scene.etcd.transact(*second)[0]
        scene.die(3)
        assert not scene.etcd.transact(*first)[0]
    elif lives_meanwhile:
        assert not scene.etcd.transact(*first)[0]
    else:
        order = [first, second] if is_unregistered_first else [second, first]
        assert [scene.etcd.transact(*each)[0] for each in order] == [True, False]
        scene.hear()
        has_replica = any(
            3 in row.replicas for topic in scene.state.topics.values() for row in topic.partitions
        )
        assert (3 in scene.state.broker_ids, has_replica) == (not is_unregistered_first,) * 2


def transaction_of(
    scene: scenes.Rows, records: list[MetadataRecord], change: ConditionalChange | None
) -> tuple[list[Compare], list[Operation]]:
    """What is written of a change that is decided now."""
    transaction = Transaction(scene.known)
    for record in records:
        transaction.add(record)
    if change is not None:
        change.guard(transaction)
    return transaction.compares, transaction.operations


def test_a_life_without_registration_counts_once_its_broker_has_registered() -> None:
    keys = Keys("/t/")
    etcd = SimulatedEtcd(Random(3))
    known = KnownRows(keys)
    state = ClusterState()

    def hear() -> None:
        for record in known.apply(known.difference(etcd.rows(keys.prefix))):
            state.apply(record)

    etcd.transact([], [Put(keys.life(3), encode_row(LifeRow(ROW_FORMAT, "", 0, "serving")))])
    hear()
    assert state.broker_ids == state.placeable_ids == []

    etcd.transact([], [Put(keys.broker(3), encode_row(BrokerRow(ROW_FORMAT, "", "", {}, "")))])
    hear()
    assert state.broker_ids == state.placeable_ids == [3]

    etcd._remove([keys.life(3)])
    hear()
    assert state.placeable_ids == []
