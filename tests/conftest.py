"""What all tests share: marks by folder, and which form of the hot modules runs which test."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import tarry

# A machine that is busy is no failure: nothing is timed example by example.
hypothesis.settings.register_profile(
    "tarry", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tarry")

# Folders whose tests start other processes; `make quick` leaves them out.
PROCESS_FOLDERS = ("interop", "processes", "meta")

# Folders whose tests ask nothing of the form and mostly wait for other programs; where both forms
# run, a third worker runs these, compiled.
ONE_FORM_FOLDERS = ("interop", "meta")

TESTS = Path(__file__).parent


def pytest_report_header(config: pytest.Config) -> str:
    return f"hot modules: {tarry.FORM} ({tarry.FORM_REASON})"


def pytest_configure(config: pytest.Config) -> None:
    let_children_be_interrupted()
    for line in (
        "process: starts other processes",
        "slow: takes more than a few seconds",
        "interpreted: replaces or traces functions of the product, which is no use when compiled",
    ):
        config.addinivalue_line("markers", line)


def let_children_be_interrupted() -> None:
    """Give the programs that tests start the system's own way with signals.

    What is ignored is inherited, and a shell ignores SIGINT for what it starts in the background,
    `nohup` SIGHUP.  A handler is not inherited; this one does nothing, so we go on ignoring them.
    """
    for one in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(one) == signal.SIG_IGN:
            signal.signal(one, lambda number, frame: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if folder_of(item) in PROCESS_FOLDERS:
            item.add_marker(pytest.mark.process)
    left_out = [item for item in items if not runs_here(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if runs_here(item)]


@pytest.fixture
def young_heap() -> Iterator[None]:
    """A heap on which a collection is short: it passes over what was there before the test.

    Thousands of collected tests lie on the heap, and `gc.collect()` would walk them every time.
    """
    gc.freeze()
    yield
    gc.unfreeze()


def runs_here(item: pytest.Item) -> bool:
    if tarry.FORM == "compiled" and item.get_closest_marker("interpreted") is not None:
        return False
    # "both": what runs in both forms; "one": the rest.  Without it a worker is alone.
    part = os.environ.get("TARRY_TEST_PART")
    return part is None or (part == "one") == (folder_of(item) in ONE_FORM_FOLDERS)


def folder_of(item: pytest.Item) -> str:
    """The folder right below tests; nothing for a test that lies elsewhere."""
    return item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
