"""Filters: conditions of a query that narrow a batch's offsets; Spark evaluates them once more.

A condition on the topic, the partition or the offset narrows on both sides.  One on the timestamp
narrows the start alone: a record behind a young one may be old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tarry.spark.reading.batch import BatchReader
from tarry.spark.reading.plan import ReadRange
from tarry.spark.steps.columns import RECORD

if TYPE_CHECKING:
    from tarry.spark.reading.cluster import TopicLogs

AT_LEAST = (EqualTo, GreaterThanOrEqual, GreaterThan)


class FilteringBatchReader(BatchReader):
    """Reader of one batch that takes conditions of its query.

    Spark refuses such a reader where `spark.sql.python.filterPushdown.enabled` is not true.
    """

    filters: tuple[Filter, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep the conditions, and let Spark evaluate all of them too."""
        self.filters = (
            tuple(filters) if self.options.values is None else tuple(filters_of_record(filters))
        )
        return filters

    def narrowed(self, ranges: list[ReadRange], logs: TopicLogs) -> list[ReadRange]:
        """Return the ranges outside which no record meets the conditions."""
        found = [part for one in ranges if (part := narrowed_range(one, self.filters)).size > 0]
        time_ms = time_least_ms(self.filters)
        if time_ms is None or not found:
            return found
        firsts = logs.at_times(
            dict.fromkeys(((one.topic, one.partition) for one in found), time_ms)
        )
        parts: list[ReadRange] = []
        for one in found:
            first = firsts[one.topic, one.partition]
            # No record is that young.
            first = one.end if first < 0 else min(max(one.first, first), one.end)
            parts.append(ReadRange(one.topic, one.partition, first, one.end))
        return parts


def filters_of_record(filters: Iterable[Filter]) -> Iterator[Filter]:
    """Yield the conditions on a record's own columns, by their names.

    Where values are columns, those of the record are in the struct `_record`.
    """
    for each in filters:
        name = getattr(each, "attribute", ())
        if name[:1] == (RECORD,) and len(name) > 1:
            # Any: all conditions that name a column are dataclasses with it, and their base is not.
            condition: Any = each
            yield replace(condition, attribute=name[1:])


def narrowed_range(one: ReadRange, filters: Iterable[Filter]) -> ReadRange:
    """Return the part of a range whose topic, partition and offsets meet the conditions."""
    first, end = one.first, one.end
    for each in filters:
        column = getattr(each, "attribute", ())
        if column in (("topic",), ("partition",)):
            if not _is_met(each, one.topic if column == ("topic",) else one.partition):
                return ReadRange(one.topic, one.partition, first, first)
        elif column == ("offset",):
            low, high = _bounds(each)
            first = first if low is None else max(first, low)
            end = end if high is None else min(end, high)
    first = min(first, one.end)
    return ReadRange(one.topic, one.partition, first, max(first, end))


def _is_met(each: Filter, value: object) -> bool:
    """Return false if a value that is there does not meet a condition."""
    if isinstance(each, EqualTo):
        return bool(each.value == value)
    if isinstance(each, In):
        return value in each.value
    return True


def _bounds(each: Filter) -> tuple[int | None, int | None]:
    """Return the first offset that may meet a condition, and the one behind the last."""
    value = getattr(each, "value", None)
    if isinstance(each, In) and each.value and all(type(one) is int for one in each.value):
        return min(each.value), max(each.value) + 1
    if type(value) is not int:
        return None, None
    if isinstance(each, EqualTo):
        return value, value + 1
    if isinstance(each, GreaterThan):
        return value + 1, None
    if isinstance(each, GreaterThanOrEqual):
        return value, None
    if isinstance(each, LessThan):
        return None, value
    return (None, value + 1) if isinstance(each, LessThanOrEqual) else (None, None)


def time_least_ms(filters: Iterable[Filter]) -> int | None:
    """Return the earliest time that meets the conditions; None if they name none, or one before
    1970, which logs are not asked for: a record without a time is of the millisecond before."""
    times = [
        int(each.value.timestamp() * 1_000)
        for each in filters
        if isinstance(each, AT_LEAST)
        and each.attribute == ("timestamp",)
        and isinstance(each.value, datetime)
        and each.value.tzinfo is not None
    ]
    least = max(times, default=-1)
    return least if least >= 0 else None
