"""The map of keys: the last offset of each, within its bound."""

from __future__ import annotations

from tarry.log.compaction.key_map import ENTRY_BYTES, KeyMap


def test_the_last_offset_of_a_key_counts():
    keys = KeyMap(1 << 20)

    keys.put(b"a", 1)
    keys.put(b"b", 2)
    keys.put(b"a", 3)

    assert [keys.last_offset(key) for key in (b"a", b"b", b"c")] == [3, 2, -1]
    assert keys.count == 2


def test_the_empty_key_is_one():
    keys = KeyMap(1 << 20)

    keys.put(b"", 7)

    assert keys.last_offset(b"") == 7


def test_long_keys_are_told_apart_from_each_other_and_from_their_digests():
    keys = KeyMap(1 << 20)
    long = [b"x" * size for size in range(30, 200)]

    for offset, key in enumerate(long):
        keys.put(key, offset)

    assert [keys.last_offset(key) for key in long] == list(range(len(long)))
    assert all(len(key) <= 33 for shard in keys._shards for key in shard)


def test_there_is_room_for_as_many_keys_as_the_buffer_takes():
    keys = KeyMap(10 * ENTRY_BYTES)
    for number in range(7):
        keys.put(b"%d" % number, number)

    assert keys.has_room(3)
    assert not keys.has_room(4)


def test_an_empty_map_takes_any_batch_so_that_there_is_progress():
    assert KeyMap(0).has_room(1_000_000)


def test_it_is_cleared_in_parts():
    keys = KeyMap(1 << 20)
    for number in range(5_000):
        keys.put(b"%d" % number, number)

    parts = 1
    while not keys.try_clear(500):
        parts += 1

    assert parts > 5
    assert keys.count == 0
    assert keys.last_offset(b"1") == -1


def test_keys_spread_over_many_dictionaries():
    keys = KeyMap(1 << 20)

    for number in range(51_200):
        keys.put(b"user-%08d" % number, number)

    assert max(len(shard) for shard in keys._shards) < 200
