"""Event loops under the test's hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.hand_loop import HandLoop, Recorder

from tarry.timer.asyncio_timer import AsyncioTimer


@pytest.fixture
def loop() -> Iterator[HandLoop]:
    loop = HandLoop()
    yield loop
    loop.close()


@pytest.fixture
def timer(loop: HandLoop) -> AsyncioTimer:
    return AsyncioTimer(loop)


@pytest.fixture
def record(loop: HandLoop) -> Recorder:
    return Recorder(loop)
