"""Processors of steps with state in the processes to which Spark sends them."""

from __future__ import annotations

import pickle
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.spark.steps.buckets.processor import STATE_ASKER
from tarry.spark.steps.seen_events import SeenEvents
from tarry.spark.steps.waits_on_events import WaitsOnEvents


@pytest.mark.parametrize("processor", [SeenEvents(["id"], 5, "told"), WaitsOnEvents(5)])
@pytest.mark.parametrize(("name", "printed"), [(STATE_ASKER, ""), ("pyspark.daemon", "x\n")])
def test_the_process_that_asks_for_the_state_prints_nothing(
    processor, name, printed, monkeypatch, capsys
):
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(name, None)
    pickled = pickle.dumps(processor)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "__main__", main)
        patched.setattr(sys, "stdout", sys.stdout)

        copy = pickle.loads(pickled)
        sys.stdout.write("x\n")

    assert copy.within_us == 5
    assert capsys.readouterr().out == printed
