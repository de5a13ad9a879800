"""Skips that fail: where everything is installed, a test that is skipped tests nothing any more."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

import pytest

# Things that may be missing even there: shells that nothing else needs, and in a container the
# right to mount a disk.
MAY_LACK: Final = re.compile(r"\b(zsh|fish) is not installed|no disk can be mounted here")


class NoSkips:
    """Plugin that makes a failure of each skip, of a test or of a whole module."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        # An expected failure is told as a skip too.
        if report.skipped and not hasattr(report, "wasxfail"):
            _fail(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.skipped:
            _fail(report)
        return report


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if MAY_LACK.search(reason) is None:
        report.outcome = "failed"
        report.longrepr = (
            f"{report.nodeid} is skipped where no test may be (TARRY_NO_SKIPS): {reason}"
        )
