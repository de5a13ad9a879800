"""Claims: who takes a partition over, in which epoch, and what must hold when it is written."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.cluster.row_scene import KEYS, TOPIC_ID, Rows

from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.claims import CANDIDATE_MS, CLAIMS_PER_TRANSACTION, ClaimPartitions
from tarry.cluster.decisions.row_changes import Place
from tarry.cluster.state.records import PartitionChanged
from tarry.cluster.state.state import ClusterState, TopicState


def claim_by(
    rows: Rows, broker_id: int, epoch: int, doubts: tuple[Place, ...] = ()
) -> tuple[ClaimPartitions, list[PartitionChanged]]:
    rows.hear()
    claim = ClaimPartitions(rows.known, broker_id, epoch, rows.settings, rows.spells, doubts)
    return claim, rows.decide(claim)


class CountedClaims(ClaimPartitions):
    """Claims that count the rows at which they look, in all their parts."""

    def __init__(self, rows: Rows, broker_id: int, epoch: int) -> None:
        rows.hear()
        super().__init__(rows.known, broker_id, epoch, rows.settings, rows.spells)
        self.looked_at: list[int] = []

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        self.looked_at.append(index)
        return super().changed(view, topic, index, row)


def claim_all(rows: Rows, claims: ClaimPartitions) -> list[int]:
    """Claim part by part, and return how many each part claims."""
    sizes = []
    while True:
        records = rows.decide(claims)
        assert rows.write(claims, records)
        sizes.append(len(records))
        rows.hear()
        if claims.is_last:
            return sizes
        claims = claims.rest()


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_what_a_living_leader_leads_is_claimed_by_nobody(rows: Rows) -> None:
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2)}
    rows.topic([[1], [2]], epochs)

    for broker_id, epoch in epochs.items():
        claim, records = claim_by(rows, broker_id, epoch)
        assert (records, claim.is_last) == ([], True)


def test_a_leader_that_has_begun_another_life_claims_in_a_higher_epoch(rows: Rows) -> None:
    rows.topic([[1], [2], [1]], {1: rows.live(1), 2: rows.live(2)})
    rows.die(1)
    epoch = rows.live(1)
    claim, records = claim_by(rows, 1, epoch)

    assert [record.index for record in records] == [0, 2]
    assert {record.row.broker_epoch for record in records} == {epoch}
    assert {(record.row.leader_id, record.row.leader_epoch) for record in records} == {(1, 1)}
    assert rows.write(claim, records)
    assert claim_by(rows, 1, epoch)[1] == []
    assert rows.state.topics["orders"].partitions[2].leader_epoch == 1
    assert rows.state.topics["orders"].partitions[1].leader_epoch == 0


def test_each_life_claims_in_an_epoch_of_its_own(rows: Rows) -> None:
    rows.topic([[1]], {1: rows.live(1)})
    found = []
    for _ in range(3):
        rows.die(1)
        claim, records = claim_by(rows, 1, rows.live(1))
        assert rows.write(claim, records)
        found.append(records[0].row.leader_epoch)

    assert found == [1, 2, 3]


def test_the_first_living_member_of_the_isr_claims(rows: Rows) -> None:
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2, 3)}
    rows.topic([[1, 2, 3]], epochs)
    rows.part(0, leader=1, epoch=4, life=epochs[1], isr=[1, 3])
    rows.die(1)

    assert claim_by(rows, 2, epochs[2])[1] == []
    claim, records = claim_by(rows, 3, epochs[3])
    assert [record.row.leader_id for record in records] == [3]
    assert records[0].row.leader_epoch == 5
    assert rows.write(claim, records)


def test_nobody_claims_from_outside_the_isr(rows: Rows) -> None:
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2)}
    rows.topic([[1, 2]], epochs)
    rows.part(0, leader=1, epoch=0, life=epochs[1], isr=[1])
    rows.die(1)

    assert claim_by(rows, 2, epochs[2])[1] == []


def claimed_late(rows: Rows) -> tuple[ClaimPartitions, list[PartitionChanged]]:
    """A claim of broker 2 that was decided and not written yet."""
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2)}
    rows.topic([[1, 2]], epochs)
    rows.die(1)
    return claim_by(rows, 2, epochs[2])


def test_a_claim_fails_if_its_own_life_is_over(rows: Rows) -> None:
    claim, records = claimed_late(rows)
    rows.die(2)
    rows.live(2)

    assert not rows.write(claim, records)


def test_a_claim_fails_if_the_row_has_moved_on(rows: Rows) -> None:
    claim, records = claimed_late(rows)
    rows.part(0, leader=1, epoch=1, life=9, isr=[1, 2])

    assert not rows.write(claim, records)


def test_a_claim_brings_no_row_of_a_deleted_topic_back(rows: Rows) -> None:
    claim, records = claimed_late(rows)
    rows.etcd._remove([KEYS.topic(TOPIC_ID)])

    assert not rows.write(claim, records)
    assert rows.etcd.rows(KEYS.parts(TOPIC_ID)) == []


def test_a_claim_of_a_life_that_is_over_decides_nothing(rows: Rows) -> None:
    first = rows.live(1)
    rows.topic([[1]], {1: first})
    rows.die(1)
    rows.live(1)

    assert claim_by(rows, 1, first)[1] == []


def test_many_partitions_are_claimed_in_transactions_that_etcd_takes(rows: Rows) -> None:
    count = 2 * CLAIMS_PER_TRANSACTION + 1
    rows.topic([[1]] * count, {1: rows.live(1)})
    rows.die(1)
    sizes = claim_all(rows, CountedClaims(rows, 1, rows.live(1)))

    assert sizes == [CLAIMS_PER_TRANSACTION, CLAIMS_PER_TRANSACTION, 1]
    assert {row.leader_epoch for row in rows.state.topics_by_id[TOPIC_ID].partitions} == {1}
    assert id_text(TOPIC_ID).encode() in rows.etcd.rows(KEYS.parts(TOPIC_ID))[0].key


@pytest.mark.parametrize("count", [100, 1_000])
def test_each_row_is_looked_at_once_however_many_transactions_it_takes(
    rows: Rows, count: int
) -> None:
    for broker_id in (1, 2):
        rows.live(broker_id)
    rows.topic([[1, 2]] * count)
    rows.die(1)
    claims = CountedClaims(rows, 2, rows.epochs[2])
    transactions = len(claim_all(rows, claims))

    # And for each part once more the first for which the part before had no room.
    assert len(claims.looked_at) == count + transactions - 1


# --- More than one replica.


def vacant(rows: Rows, isr: list[int], dead: tuple[int, ...] = (1,), **configs: str) -> None:
    """A partition of brokers 1, 2 and 3 whose leader, 1, is dead."""
    for broker_id in (1, 2, 3):
        rows.live(broker_id)
    rows.configs = {key.replace("_", "."): value for key, value in configs.items()}
    rows.topic([[1, 2, 3]])
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=isr)
    for broker_id in dead:
        rows.die(broker_id)


@pytest.mark.parametrize(
    ("isr", "dead", "min_insync", "after"),
    [
        ([1, 2, 3], (1,), "1", [2, 3]),
        ([1, 2, 3], (1,), "2", [2, 3]),
        ([1, 2, 3], (1,), "3", [1, 2, 3]),
        ([1, 2, 3], (1, 3), "1", [2]),
        ([1, 2, 3], (1, 3), "2", [1, 2]),
        ([2, 3, 1], (1, 3), "2", [2, 3]),
        ([1, 2], (1,), "1", [2]),
        ([1, 2], (1,), "2", [1, 2]),
        # No more than there are replicas; the isr does not grow.
        ([1, 2], (1,), "9", [1, 2]),
        ([2], (1,), "2", [2]),
    ],
)
def test_the_isr_after_a_claim_is_the_living_filled_up_to_the_floor(
    rows: Rows, isr: list[int], dead: tuple[int, ...], min_insync: str, after: list[int]
) -> None:
    vacant(rows, isr, dead, min_insync_replicas=min_insync)
    claim, records = claim_by(rows, 2, rows.epochs[2])

    row = records[0].row
    assert row.isr == after
    assert (row.leader_id, row.leader_epoch, row.partition_epoch) == (2, 5, 5)
    assert row.broker_epoch == rows.epochs[2]
    assert rows.write(claim, records)


def test_the_brokers_setting_counts_where_the_topic_has_none(rows: Rows) -> None:
    vacant(rows, [1, 2, 3], (1, 3))
    rows.settings = Settings({"min.insync.replicas": "2"})

    assert claim_by(rows, 2, rows.epochs[2])[1][0].row.isr == [1, 2]


def test_candidates_go_one_after_the_other_in_the_order_of_replicas(rows: Rows) -> None:
    vacant(rows, [3, 2, 1])
    claim, records = claim_by(rows, 3, rows.epochs[3])

    assert records == []
    assert claim.is_last
    assert claim.due_in_ms == CANDIDATE_MS
    rows.turn.now_ms += CANDIDATE_MS - 1
    claim, records = claim_by(rows, 3, rows.epochs[3])
    assert (records, claim.due_in_ms) == ([], 1)
    rows.turn.now_ms += 1
    claim, records = claim_by(rows, 3, rows.epochs[3])
    assert [record.row.leader_id for record in records] == [3]
    assert claim.due_in_ms is None


def test_a_later_candidate_comes_towards_an_earlier_one_that_is_not_done(rows: Rows) -> None:
    for broker_id in (1, 2, 3):
        rows.live(broker_id)
    count = 2 * CLAIMS_PER_TRANSACTION
    rows.topic([[1, 2, 3]] * count + [[1, 3, 2]] * 2)
    rows.die(1)
    own, records = claim_by(rows, 3, rows.epochs[3])
    assert [record.index for record in records] == [count, count + 1]
    assert rows.write(own, records)
    rows.turn.now_ms += CANDIDATE_MS
    earlier, earlier_records = claim_by(rows, 2, rows.epochs[2])
    later, later_records = claim_by(rows, 3, rows.epochs[3])

    assert later_records[0].index == count - 1
    assert rows.write(earlier, earlier_records)
    assert rows.write(later, later_records)


def test_what_an_earlier_part_leaves_to_others_is_due_after_the_last_part(rows: Rows) -> None:
    for broker_id in (1, 2, 3, 4):
        rows.live(broker_id)
    rows.topic([[1, 4, 3]] * (CLAIMS_PER_TRANSACTION + 1) + [[2, 4, 3]])
    rows.die(1)
    claim_by(rows, 3, rows.epochs[3])
    rows.turn.now_ms += CANDIDATE_MS
    # It comes first, and its time has not come.
    rows.die(2)
    first, records = claim_by(rows, 3, rows.epochs[3])
    assert rows.write(first, records)
    rows.hear()
    last = first.rest()

    assert [record.index for record in rows.decide(last)] == [0]
    assert (last.is_last, last.due_in_ms) == (True, CANDIDATE_MS)
    # Written late: a timer takes no time that is over.
    rows.turn.now_ms += 2 * CANDIDATE_MS
    assert last.due_in_ms == 1


def test_of_two_candidates_one_claim_is_written(rows: Rows) -> None:
    vacant(rows, [1, 2, 3])
    claim_by(rows, 3, rows.epochs[3])
    rows.turn.now_ms += CANDIDATE_MS
    second, second_records = claim_by(rows, 3, rows.epochs[3])
    first, first_records = claim_by(rows, 2, rows.epochs[2])

    assert rows.write(second, second_records)
    assert not rows.write(first, first_records)
    assert claim_by(rows, 2, rows.epochs[2])[1] == []


@pytest.mark.parametrize(
    ("phases", "due_in_ms"),
    [
        # Who serves goes before who starts, wherever it stands.
        ({2: "starting", 3: "serving"}, CANDIDATE_MS),
        ({2: "starting", 3: "starting"}, None),
        ({2: "starting", 3: "leaving"}, None),
        ({2: "serving", 3: "serving"}, None),
    ],
)
def test_who_is_only_starting_lets_others_go_first(
    rows: Rows, phases: dict[int, str], due_in_ms: int | None
) -> None:
    vacant(rows, [1, 2, 3])
    for broker_id, phase in phases.items():
        rows.die(broker_id)
        rows.live(broker_id, phase)
    claim, records = claim_by(rows, 2, rows.epochs[2])

    assert claim.due_in_ms == due_in_ms
    assert bool(records) == (due_in_ms is None)


def test_a_broker_that_leaves_claims_nothing(rows: Rows) -> None:
    vacant(rows, [1, 2, 3])
    rows.die(2)
    rows.live(2, "leaving")

    assert claim_by(rows, 2, rows.epochs[2])[1] == []


def test_what_is_doubted_is_not_claimed(rows: Rows) -> None:
    vacant(rows, [1, 2, 3])

    assert claim_by(rows, 2, rows.epochs[2], doubts=((TOPIC_ID, 0),))[1] == []
    assert claim_by(rows, 2, rows.epochs[2], doubts=((TOPIC_ID, 1),))[1] != []


def test_a_claim_fails_if_the_leaders_life_goes_on(rows: Rows) -> None:
    """The watch was wrong, or late: etcd alone says whose life is over."""
    vacant(rows, [1, 2, 3], dead=())
    rows.hear()
    epochs = dict(rows.epochs)
    rows.die(1)
    claim, records = claim_by(rows, 2, epochs[2])
    # The life of which the row tells is the one from before.
    rows.etcd._rows[KEYS.life(1)] = msgspec.structs.replace(
        rows.etcd.rows(KEYS.life(2))[0], key=KEYS.life(1), create_revision=epochs[1]
    )

    assert not rows.write(claim, records)


def test_a_leader_in_another_life_is_claimed_from(rows: Rows) -> None:
    vacant(rows, [1, 2, 3])
    rows.live(1, "starting")
    claim, records = claim_by(rows, 2, rows.epochs[2])

    assert records[0].row.isr == [1, 2, 3]
    assert rows.write(claim, records)


def test_a_claim_that_was_done_unknown_to_its_broker_is_not_done_twice(rows: Rows) -> None:
    vacant(rows, [1, 2, 3])
    claim, records = claim_by(rows, 2, rows.epochs[2])
    assert rows.write(claim, records)
    rows.hear()

    assert rows.decide(claim) == []
    assert claim.is_last
    assert rows.row().leader_epoch == 5


def test_one_transaction_compares_no_more_than_etcd_takes(rows: Rows) -> None:
    """Every partition had another leader: each of them is one more life to compare."""
    count = CLAIMS_PER_TRANSACTION + 5
    own = rows.live(1)
    for broker_id in range(2, count + 2):
        rows.live(broker_id)
    rows.topic([[broker_id, 1] for broker_id in range(2, count + 2)])
    for broker_id in range(2, count + 2):
        rows.die(broker_id)
    claimed = 0
    is_last = False
    while not is_last:
        claim, records = claim_by(rows, 1, own)
        assert rows.write(claim, records)
        claimed += len(records)
        is_last = claim.is_last

    assert claimed == count
