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
    from tarry.spark.steps.aggregation import aggregate as aggregate
    from tarry.spark.steps.checking import check as check
    from tarry.spark.steps.cleaning import clean as clean
    from tarry.spark.steps.decoding import decode as decode
    from tarry.spark.steps.deduplication import deduplicate as deduplicate
    from tarry.spark.steps.deriving import derive as derive
    from tarry.spark.steps.refused import StepRefused as StepRefused
    from tarry.spark.steps.waiting import wait as wait

# PySpark is loaded with the first step that is used.  No module is named as its function: the
# module would hide it.
HOMES: Final = {
    "aggregate": "tarry.spark.steps.aggregation",
    "check": "tarry.spark.steps.checking",
    "clean": "tarry.spark.steps.cleaning",
    "decode": "tarry.spark.steps.decoding",
    "deduplicate": "tarry.spark.steps.deduplication",
    "derive": "tarry.spark.steps.deriving",
    "StepRefused": "tarry.spark.steps.refused",
    "wait": "tarry.spark.steps.waiting",
}

__all__ = ["StepRefused", "aggregate", "check", "clean", "decode", "deduplicate", "derive", "wait"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
