"""Trees of buckets: what is stored is what a dictionary would hold, in leaves that stay small."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, settings, strategies as st

from tarry.spark.steps.buckets import tree as trees
from tarry.spark.steps.buckets.tree import BucketTree, LeafKind, place_of


class StoredLeaves:
    """Leaves in memory, which count what is read and written."""

    def __init__(self) -> None:
        self.leaves: dict[int, bytes] = {}
        self.read: list[int] = []
        self.written: list[int] = []

    def get(self, begin: int) -> bytes:
        self.read.append(begin)
        return self.leaves[begin]

    def put(self, begin: int, leaf: bytes) -> None:
        self.written.append(begin)
        self.leaves[begin] = leaf

    def remove(self, begin: int) -> None:
        del self.leaves[begin]


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    monkeypatch.setattr(trees, "ENTRIES_MAX", 8)
    monkeypatch.setattr(trees, "ENTRIES_MIN", 4)


# The entry of a key is the time at which it is forgotten.
KIND = LeafKind(int, lambda entries: min(entries.values()))


def digest(number: int) -> bytes:
    return sha256(str(number).encode()).digest()[:16]


def put_all(tree: BucketTree[int], wanted: dict[bytes, int]) -> None:
    digests = list(wanted)

    def change(entries: dict[bytes, int], near: list[int]) -> None:
        entries.update({digests[place]: wanted[digests[place]] for place in near})

    tree.change(digests, change)


def everything(tree: BucketTree[int], leaves: StoredLeaves) -> dict[bytes, int]:
    """What the leaves hold, each in its range and no larger than it may be."""
    found: dict[bytes, int] = {}
    begins = tree.root.begins
    assert begins[0] == 0
    assert begins == sorted(set(begins))
    assert sorted(leaves.leaves) == [
        begin for begin, due in zip(begins, tree.root.dues, strict=True) if due is not None
    ]
    for begin, end, due in zip(begins, [*begins[1:], 1 << 32], tree.root.dues, strict=True):
        entries = {} if due is None else KIND.decode(leaves.leaves[begin])
        assert len(entries) <= 8
        assert all(begin <= place_of(one) < end for one in entries)
        assert due == min(entries.values(), default=None)
        found |= entries
    return found


ROUNDS = st.lists(
    st.tuples(st.lists(st.integers(0, 300), unique=True, max_size=60), st.integers(0, 30)),
    max_size=8,
)


@given(ROUNDS)
@settings(deadline=None)
def test_a_tree_holds_what_a_dictionary_holds(rounds):
    leaves, expected, root, now = StoredLeaves(), {}, None, 0
    for numbers, later in rounds:
        tree = BucketTree(root, leaves, KIND)
        wanted = {digest(number): now + 1 + number % 40 for number in numbers}
        put_all(tree, wanted)
        expected |= wanted
        assert everything(tree, leaves) == expected
        now += later

        def forget(entries, now=now):
            for one in [one for one, time in entries.items() if time <= now]:
                del entries[one]

        tree.change_due(now, forget)
        expected = {one: time for one, time in expected.items() if time > now}
        assert everything(tree, leaves) == expected
        assert tree.is_empty == (not expected)
        assert tree.next_due == min(expected.values(), default=None)
        root = tree.root


def test_a_change_touches_the_leaves_of_its_keys_alone():
    leaves = StoredLeaves()
    tree = BucketTree(None, leaves, KIND)
    put_all(tree, {digest(number): 5 for number in range(1_000)})
    assert len(leaves.leaves) > 125
    leaves.read, leaves.written = [], []

    put_all(tree, {digest(7): 6, digest(8): 5})

    assert len(leaves.read) == 2
    assert len(leaves.written) == 1
    assert everything(tree, leaves)[digest(7)] == 6


def test_leaves_that_became_small_are_joined():
    leaves = StoredLeaves()
    tree = BucketTree(None, leaves, KIND)
    put_all(tree, {digest(number): 9 if number < 10 else 5 for number in range(1_000)})

    def forget(entries):
        for one in [one for one, time in entries.items() if time <= 5]:
            del entries[one]

    tree.change_due(5, forget)

    assert len(everything(tree, leaves)) == 10
    assert len(leaves.leaves) <= 6


def test_keys_of_one_place_stay_in_one_leaf():
    leaves = StoredLeaves()
    tree = BucketTree(None, leaves, KIND)
    wanted = {b"\xff\xff\xff\xff" + bytes([number]): 1 for number in range(20)}

    put_all(tree, wanted)

    assert tree.root.begins == [0, (1 << 32) - 1]
    assert KIND.decode(leaves.leaves[(1 << 32) - 1]) == wanted
