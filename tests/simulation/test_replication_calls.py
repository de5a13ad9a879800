"""Calls between the modules of replication go one way: events down, results back as values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from tests.support.cluster.simulated_cluster import SimulatedCluster

PACKAGE = "tarry.broker.replication."


@contextmanager
def traced(calls: dict[tuple[str, str], str]) -> Iterator[None]:
    """Note which module of the package calls which other one, each with an example."""

    def note(frame: FrameType, event: str, _: object) -> None:
        caller = frame.f_back
        if event != "call" or caller is None:
            return
        callee_module = frame.f_globals.get("__name__", "")
        caller_module = caller.f_globals.get("__name__", "")
        if caller_module == callee_module or not caller_module.startswith(PACKAGE):
            return
        if callee_module.startswith(PACKAGE):
            example = f"{caller.f_code.co_qualname} calls {frame.f_code.co_qualname}"
            calls.setdefault((caller_module, callee_module), example)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.interpreted
def test_no_two_modules_of_replication_call_each_other_both_ways() -> None:
    calls: dict[tuple[str, str], str] = {}
    for seed in range(3):
        cluster = SimulatedCluster(seed, replication_factor=3)
        with traced(calls):
            cluster.start()
            cluster.play()

    assert (PACKAGE + "leader_fetch", PACKAGE + "leader") in calls
    assert (PACKAGE + "follower", PACKAGE + "placement") in calls
    both = [example for (one, other), example in sorted(calls.items()) if (other, one) in calls]
    assert both == []
