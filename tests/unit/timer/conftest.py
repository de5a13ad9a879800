"""Event loops under the test's hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarry.timer.asyncio_timer import AsyncioTimer

sys.path.insert(0, str(Path(__file__).parent))

from hand_loop import HandLoop, Recorder


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
