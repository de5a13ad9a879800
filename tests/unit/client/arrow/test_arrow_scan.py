"""The face of a scan: what it refuses before it connects, and what it leaves behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tarry.client.errors import InvalidSetting, TimedOut

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")

from tarry.client.arrow import scan

RANGE = {("orders", 0): (0, 10)}


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"ranges": [1]}, TypeError, "scan takes ranges"),
        ({"columns": ["ofset"]}, ValueError, "no column 'ofset'"),
        ({"max_rows": 0}, ValueError, "one row at the least"),
        ({"settings": "localhost:9092"}, TypeError, "scan takes settings as a mapping"),
        ({"linger_ms": 5}, InvalidSetting, "linger.ms"),
    ],
)
def test_wrong_arguments_are_refused_by_the_call(
    arguments: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        scan(**{"ranges": RANGE, **arguments})


def test_a_cluster_that_is_not_there_is_an_error_in_time() -> None:
    threads = threading.active_count()

    with pytest.raises(TimedOut, match="is a broker running there"):
        next(scan(RANGE, bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=1_000))

    assert threading.active_count() == threads
