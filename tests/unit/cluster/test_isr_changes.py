"""Changes of the replicas in sync: what the row becomes, and what must hold when it is written."""

from __future__ import annotations

import pytest
from tests.unit.cluster.test_claims import TOPIC_ID, Rows

from tarry.base.etcd import Compare
from tarry.cluster.decisions.isr_changes import ISR_CHANGES_PER_TRANSACTION, ChangeIsr, IsrWish
from tarry.cluster.etcd.transactions import Transaction


class Scene:
    """Broker 1 leads partition 0 of three replicas in epoch 4."""

    def __init__(self, isr: list[int]) -> None:
        self.rows = Rows()
        self.lives = {broker_id: self.rows.live(broker_id) for broker_id in (1, 2, 3)}
        self.rows.topic([[1, 2, 3]], self.lives)
        self.rows.part(0, 1, 4, self.lives[1], isr)
        self.rows.hear()

    def wish(
        self,
        added: tuple[int, ...] = (),
        removed: tuple[int, ...] = (),
        lost: tuple[int, ...] = (),
        *,
        floor: int = 1,
        epoch: int = 4,
        must_write: bool = False,
        partition_epoch: int = 4,
    ) -> IsrWish:
        lives = {broker_id: self.lives[broker_id] for broker_id in added}
        return IsrWish(
            TOPIC_ID,
            0,
            epoch,
            partition_epoch,
            floor,
            lives,
            list(removed),
            list(lost),
            must_write,
        )

    def decide(self, wish: IsrWish) -> tuple[ChangeIsr, list[int] | None]:
        change = ChangeIsr(self.rows.known, 1, self.lives[1], [wish])
        records = change.decide(self.rows.state)
        if not records:
            return change, None
        (record,) = records
        row = record.row  # type: ignore[attr-defined]
        assert row.partition_epoch == 5
        assert (row.leader_id, row.leader_epoch, row.broker_epoch) == (1, 4, self.lives[1])
        return change, row.isr


# in sync before; added, removed, lost, floor; in sync after, - if nothing is to be written.
ROWS = """
# before  added  removed  lost  floor  after

  1,2     3      -        -     1      1,2,3
  1       2,3    -        -     1      1,2,3
  1,2,3   -      3        -     1      1,2
  1,2,3   -      3        -     2      1,2
  1,2     -      2        -     2      -
  1,2,3   -      2,3      -     2      1,3
  1,2,3   -      2,3      -     1      1
  1,3     2      3        -     2      1,2
  1,2,3   -      -        3     3      1,2
  1,2     -      -        2     2      1
  1       -      -        1     1      -
  1,2     -      1        -     1      -
  1,2     2      -        -     1      -
"""


def ids(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(int(each) for each in text.split(","))


@pytest.mark.parametrize(
    ("before", "added", "removed", "lost", "floor", "after"),
    [line.split() for line in ROWS.splitlines() if line.strip() and line[0] != "#"],
)
def test_what_the_row_becomes(
    before: str, added: str, removed: str, lost: str, floor: str, after: str
) -> None:
    scene = Scene(list(ids(before)))

    _, isr = scene.decide(scene.wish(ids(added), ids(removed), ids(lost), floor=int(floor)))

    assert isr == (None if after == "-" else list(ids(after)))


def test_it_is_done_only_while_the_leader_and_those_added_live_in_their_epochs() -> None:
    scene = Scene([1])
    change, _ = scene.decide(scene.wish((2, 3)))
    transaction = Transaction(scene.rows.known)
    change.guard(transaction)

    keys = scene.rows.known.keys
    assert transaction.compares == [
        Compare(keys.life(broker_id), "create", scene.lives[broker_id]) for broker_id in (1, 2, 3)
    ]


def test_who_has_restarted_since_its_fetch_is_not_added() -> None:
    scene = Scene([1])
    wish = scene.wish((2, 3))
    scene.rows.die(2)
    scene.rows.live(2)
    scene.rows.hear()

    assert scene.decide(wish)[1] == [1, 3]


def test_who_leads_no_more_changes_nothing() -> None:
    scene = Scene([1, 2])
    other_epoch = scene.decide(scene.wish((3,), epoch=3))[1]
    wish = scene.wish((3,))
    scene.rows.part(0, 2, 5, scene.lives[2], [2])
    scene.rows.hear()
    other_leader = scene.decide(wish)[1]
    scene.rows.die(1)
    scene.rows.live(1)
    scene.rows.part(0, 1, 4, scene.lives[1], [1, 2])
    scene.rows.hear()
    other_life = scene.decide(wish)[1]

    assert (other_epoch, other_leader, other_life) == (None, None, None)


def test_a_row_is_written_once_more_so_that_a_late_deed_fails() -> None:
    scene = Scene([1, 2])

    first = scene.decide(scene.wish(must_write=True))[1]
    moved_on = scene.decide(scene.wish(must_write=True, partition_epoch=3))[1]

    assert (first, moved_on) == ([1, 2], None)


def test_what_may_have_been_asked_for_is_known() -> None:
    scene = Scene([1])
    change, _ = scene.decide(scene.wish((2,)))

    assert list(change.sent) == [(TOPIC_ID, 0, 2)]
    assert ISR_CHANGES_PER_TRANSACTION * 3 + 2 <= 128


def test_a_wish_for_an_earlier_row_is_none_for_the_next_one() -> None:
    """The leader counts whom it wants to add until that row has moved on, and no longer."""
    scene = Scene([1, 2])

    added = scene.decide(scene.wish((3,), partition_epoch=3))[1]
    removed = scene.decide(scene.wish(removed=(2,), partition_epoch=3))[1]

    assert (added, removed) == (None, None)
