"""The door `LogLevels`: one contract for the loggers of a process and for a guest's own."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tarry.base.doors import LogLevels
from tarry.broker.loggers import KeptLevels
from tarry.runtime.log_levels import ProcessLevels

NAMES = ("", "contract", "contract.part")


@pytest.fixture(params=[ProcessLevels, KeptLevels])
def levels(request: pytest.FixtureRequest) -> Iterator[LogLevels]:
    before = [logging.getLogger(name).level for name in NAMES]
    yield request.param()
    for name, level in zip(NAMES, before, strict=True):
        logging.getLogger(name).setLevel(level)


def test_the_nearest_level_above_counts(levels: LogLevels) -> None:
    levels.set_level("", logging.WARNING)
    levels.set_level("contract", logging.ERROR)

    assert [levels.level(name) for name in NAMES] == [30, 40, 40]


def test_a_level_that_is_taken_away_gives_way_to_the_one_above(levels: LogLevels) -> None:
    levels.set_level("", logging.WARNING)
    levels.set_level("contract.part", logging.DEBUG)
    assert levels.level("contract.part") == logging.DEBUG

    levels.set_level("contract.part", logging.NOTSET)

    assert levels.level("contract.part") == logging.WARNING


def test_a_guest_leaves_the_loggers_of_the_process_alone() -> None:
    before = logging.getLogger("contract").level

    KeptLevels().set_level("contract", logging.CRITICAL)

    assert logging.getLogger("contract").level == before
