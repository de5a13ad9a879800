"""Steps of a pipeline: functions that take a DataFrame and give one, of a batch or of a stream.

    records = spark.readStream.format("tarry") ... .option("includeHeaders", "true").load()
    orders = decode(records, format="json", schema="order.json", time="at")
    orders = check(orders, {"positive": "amount > 0"})
    clean(orders, topic="orders.clean", rejected="orders.rejected").writeStream.format("tarry") ...

A row that is not well is not dropped: `_rule` says which step or rule it failed, `_error` why, and
each later step passes it on, until `clean` sends it to the rejected topic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tarry.spark.steps.checking import check as check
    from tarry.spark.steps.cleaning import clean as clean
    from tarry.spark.steps.decoding import decode as decode
    from tarry.spark.steps.refused import StepRefused as StepRefused

# PySpark is loaded with the first step that is used.  No module is named as its function: the
# module would hide it.
HOMES: Final = {
    "check": "tarry.spark.steps.checking",
    "clean": "tarry.spark.steps.cleaning",
    "decode": "tarry.spark.steps.decoding",
    "StepRefused": "tarry.spark.steps.refused",
}

__all__ = ["StepRefused", "check", "clean", "decode"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
