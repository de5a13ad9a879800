"""The faces' random numbers."""

from __future__ import annotations

import pytest

from tarry.client.face.chance import SystemRandom


def test_numbers_are_within_their_range_and_all_of_them_come() -> None:
    random = SystemRandom()

    assert {random.randrange(5) for _ in range(500)} == set(range(5))
    assert {random.randrange(1) for _ in range(10)} == {0}
    assert {random.getrandbits(3) for _ in range(500)} == set(range(8))
    assert random.getrandbits(128).bit_length() <= 128


def test_there_is_no_number_below_nothing() -> None:
    with pytest.raises(ValueError, match="no number below 0"):
        SystemRandom().randrange(0)
