"""What all tests share: marks by folder, and which form of the hot modules runs which test."""

from __future__ import annotations

import gc
import os
import random
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.support.no_skips import NoSkips

import tarry

# A machine that is busy is no failure: nothing is timed example by example.
UNTIMED = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)

# The suite draws the same examples in every run, so that what fails is the change's fault.
hypothesis.settings.register_profile("tarry", UNTIMED, derandomize=True)

# `make draw` draws new ones; its seed tells all of them.
hypothesis.settings.register_profile("draw", UNTIMED, database=None)

# For so many seconds new examples are drawn; "": this is no run of `make draw`.
DRAW_SECONDS = os.environ.get("TARRY_DRAW_SECONDS", "")

hypothesis.settings.load_profile("draw" if DRAW_SECONDS else "tarry")

# No profile of whoever runs the tests says which cluster they use.
os.environ["TARRY_PROFILES"] = os.devnull

# Folders whose tests start other processes; `make quick` leaves them out.
PROCESS_FOLDERS = ("interop", "processes", "meta", "spark")

# Folders whose tests ask nothing of the form and mostly wait for other programs; where both forms
# run, three more workers share these, compiled.
ONE_FORM_FOLDERS = ("interop", "meta", "spark")

# Folders of long tests, or of modules that are never compiled: where both forms run, each has every
# other file of them.  `test_seeds` shares out its blocks of seeds itself.
SHARED_OUT = (
    "contracts",
    "model",
    "processes",
    "simulation",
    "unit/cli",
    "unit/spark",
    "unit/testing",
)

TESTS = Path(__file__).parent

# When the first test began.
BEGAN = pytest.StashKey[float]()


def pytest_report_header(config: pytest.Config) -> str:
    return f"hot modules: {tarry.FORM} ({tarry.FORM_REASON})"


@pytest.hookimpl(trylast=True)  # behind the one that makes the reporter
def pytest_configure(config: pytest.Config) -> None:
    let_children_be_interrupted()
    for line in (
        "process: starts other processes",
        "slow: takes more than a few seconds",
        "interpreted: replaces or traces functions of the product, which is no use when compiled",
        "heavy: takes long and asks nothing of the form; compiled only, where both forms run",
    ):
        config.addinivalue_line("markers", line)
    if os.environ.get("TARRY_NO_SKIPS") == "1":
        config.pluginmanager.register(NoSkips())
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    # Workers have none.
    if reporter is not None:
        config.pluginmanager.register(FailureLines(reporter))


class FailureLines:
    """Lines that name failures, and why, as they come: a suite that is ended half-way tells them
    too."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.ensure_newline()
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = "" if crash is None else f": {crash.message.partition(chr(10))[0]:.300}"
            self._reporter.write_line(f"{report.when} of {report.nodeid} failed{reason}", red=True)


def let_children_be_interrupted() -> None:
    """Give the programs that tests start the system's own way with signals.

    What is ignored is inherited, and a shell ignores SIGINT for what it starts in the background,
    `nohup` SIGHUP.  A handler is not inherited; this one does nothing, so we go on ignoring them.
    """
    for one in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(one) == signal.SIG_IGN:
            signal.signal(one, lambda number, frame: None)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over the folders that other workers run: reading them takes seconds."""
    part = os.environ.get("TARRY_TEST_PART")
    if part is None or collection_path.parent != TESTS or not collection_path.is_dir():
        return None
    return True if (part == "both") == (collection_path.name in ONE_FORM_FOLDERS) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if folder_of(item) in PROCESS_FOLDERS:
            item.add_marker(pytest.mark.process)
    left_out = [item for item in items if not runs_here(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if runs_here(item)]
    if DRAW_SECONDS:
        # There is time for some tests only: each run begins with others.
        random.Random(config.getoption("--hypothesis-seed")).shuffle(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave out what there is no time for, without a word."""
    if not DRAW_SECONDS:
        return None
    began = item.config.stash.setdefault(BEGAN, time.monotonic())
    return True if time.monotonic() > began + float(DRAW_SECONDS) else None


def pytest_collection_finish() -> None:
    """Have collections pass over the thousands of collected tests: a fifth of the suite's CPU."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def young_heap() -> None:
    """A heap on which a collection is short: it passes over what was there before the test."""
    gc.freeze()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have Ctrl-C come as Python's own handler gives it, also where our shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def runs_here(item: pytest.Item) -> bool:
    if tarry.FORM == "compiled" and item.get_closest_marker("interpreted") is not None:
        return False
    # Without a part a worker is alone.
    part = os.environ.get("TARRY_TEST_PART")
    if part == "both" and not runs_in_this_form(item):
        return False
    return part is None or part == part_of(item)


def runs_in_this_form(item: pytest.Item) -> bool:
    """Return whether this of two workers, one of each form, runs a test of the part "both"."""
    is_compiled = tarry.FORM == "compiled"
    if item.get_closest_marker("interpreted") is not None:
        return not is_compiled
    if item.get_closest_marker("heavy") is not None:
        return is_compiled
    name = item.path.relative_to(TESTS).as_posix()
    if name.startswith(tuple(f"{folder}/" for folder in SHARED_OUT)) and "test_seeds" not in name:
        # Which file is whose stays the same as long as it has its name.
        return zlib.crc32(item.path.name.encode()) % 2 == is_compiled
    return True


def part_of(item: pytest.Item) -> str:
    """Return "both" for what runs in both forms, else the part to which a test belongs.

    The part "groups" has the tests of groups, which share a broker and a JVM, and those of the
    project's own rules; the part "spark" those that share a Spark.
    """
    folder = folder_of(item)
    if folder not in ONE_FORM_FOLDERS:
        return "both"
    if folder == "spark":
        return "spark"
    return "groups" if folder == "meta" or "group" in item.path.name else "clients"


def folder_of(item: pytest.Item) -> str:
    """The folder right below tests; nothing for a test that lies elsewhere."""
    return item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
