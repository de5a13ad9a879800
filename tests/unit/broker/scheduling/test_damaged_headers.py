"""Opened batches, ids and cancels on a disk that flips a bit: nothing comes early or twice."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import a_batch
from tests.unit.broker.scheduling.test_damage import Logs, P, S, Witness
from tests.unit.broker.scheduling.test_headers import Scheduler, after, cancel

from tarry.base import errors
from tarry.simulation.by_hand import START_WALL_MS

# When what waits is due, in the time since the start; the rest has come already.
WAITING = {b"a": 60_000, b"b": 90_000, b"cancelled": 60_000, b"d": 120_000}
CAME = [b"noted", b"first"]


@pytest.fixture(scope="module")
def logs() -> Logs:
    user = Scheduler()
    user.schedule((b"noted", after(1_000)))
    user.schedule(
        (b"a", after(60_000)),
        (b"b", after(90_000)),
        (b"cancelled", after(60_000, "gone")),
        codec=1,
    )
    user.pass_time(2_000)
    user.pass_time(2_000)
    user.schedule((b"first", after(100)), (b"d", after(116_000, "kept")))
    user.pass_time(500)
    user.schedule((b"", cancel("gone")))
    return Logs(user.hand)


@pytest.mark.parametrize("path", [S, P])
def test_no_flipped_bit_makes_a_place_come_early_or_twice_or_never(logs: Logs, path: str):
    for position in range(logs.size(path)):
        where = f"{path} at {position}"
        hand, disk = logs.begin()
        disk.flip_bit(path, position)
        hand.start()
        user = Witness(hand)
        code = user.produce(a_batch(b"direct")).error_code
        for after_ms in (59_999, 60_001, 89_999, 90_001, 119_999, 121_000, 130_000):
            user.at(after_ms)
            seen = user.sound_values()
            early = [value for value in seen if value and WAITING.get(value, 0) > after_ms]
            assert not early, f"early: {where}"
            assert len(set(seen)) == len(seen), f"twice: {where}: {seen}"
        assert code in (errors.NONE, errors.KAFKA_STORAGE_ERROR), where
        hand.stop()
        disk.flip_bit(path, position)
        hand.start()
        user = Witness(hand)
        user.at(140_000)

        wanted = [*CAME, b"a", b"b", b"d", *([b"direct"] if code == errors.NONE else [])]
        values = [value for value in user.sound_values() if value]
        # The note of the cancel may have been the damaged one.
        assert sorted(set(values) - {b"cancelled"}) == sorted(wanted), f"mended: {where}"
        assert len(values) == len(set(values)), where


def test_a_damaged_record_is_taken_back_and_does_not_come_once_the_disk_is_right_again():
    user = Scheduler()
    for number in range(3):
        user.schedule((b"damaged %d" % number, after(100, f"id {number}")))
        position = user.hand.disk.content(S).index(b"damaged %d" % number)
        user.hand.disk.flip_bit(S, position)
    user.pass_time(100)

    user.schedule((b"", cancel("id 1")))
    user.hand.stop()
    for number in range(3):
        user.hand.disk.flip_bit(S, user.hand.disk.content(S).index(b"amaged %d" % number) - 1)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.settle()
    user.pass_time(100)

    assert user.values() == [b"damaged 0", b"damaged 2"]


def test_nothing_is_damaged_and_the_cancelled_record_does_not_come(logs: Logs):
    hand, _ = logs.begin()
    hand.start()
    user = Witness(hand)
    user.at(140_000)

    assert sorted(filter(None, user.sound_values())) == sorted([*CAME, b"a", b"b", b"d"])
    assert user.hand.now_wall_ms == START_WALL_MS + 140_000
