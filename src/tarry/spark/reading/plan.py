"""Plan: ranges of offsets are shared out among tasks, by a pure function.

All ranges lie on one line, in the order of topics and partitions; the line is cut into pieces of
nearly one length.  So a task has several partitions and at most two parts of one, and a large
partition has several tasks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

# A task costs Spark some 25 ms.  Fewer records than these are read in that time.
TASK_RECORDS_MIN: Final = 10_000

# A cut that would split off less than such a part of a task lies at the end of the range instead.
SLIVER: Final = 0.1


@dataclass(frozen=True)
class ReadRange:
    """Offsets of one partition, from `first` up to `end`, which is not read."""

    topic: str
    partition: int
    first: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class TaskLimits:
    """Wishes for the number of tasks; `cores` is how many run at a time."""

    cores: int
    tasks: int | None = None
    partitions_min: int | None = None
    partition_records_max: int | None = None


def plan_tasks(ranges: Iterable[ReadRange], limits: TaskLimits) -> list[list[ReadRange]]:
    """Share ranges out among tasks, none of which is empty."""
    line = sorted(
        (one for one in ranges if one.size > 0), key=lambda one: (one.topic, one.partition)
    )
    if limits.partition_records_max is not None:
        most = limits.partition_records_max
        line = [part for one in line for part in _parts(one, -(-one.size // most))]
    total = sum(one.size for one in line)
    count = min(_task_count(total, limits), total)
    tasks = _cut(line, total, count)
    if limits.partition_records_max is not None:
        tasks = [part for task in tasks for part in _bounded(task, limits.partition_records_max)]
        tasks = [_joined(task) for task in tasks]
    return tasks


def _task_count(total: int, limits: TaskLimits) -> int:
    if limits.tasks is not None:
        return limits.tasks
    count = min(limits.cores, -(-total // TASK_RECORDS_MIN))
    return max(count, limits.partitions_min or 1)


def _parts(one: ReadRange, count: int) -> list[ReadRange]:
    """Return a range in parts of nearly one size."""
    ends = [one.first + one.size * index // count for index in range(count + 1)]
    return [ReadRange(one.topic, one.partition, first, end) for first, end in pairwise(ends)]


def _cut(line: list[ReadRange], total: int, count: int) -> list[list[ReadRange]]:
    """Cut the line into `count` pieces that are not empty."""
    ends = list(accumulate(one.size for one in line))
    cuts = [_near_end(total * index // count, ends, total // count) for index in range(1, count)]
    tasks: list[list[ReadRange]] = []
    index, begin = 0, 0
    for cut in (*cuts, total) if line else ():
        task: list[ReadRange] = []
        while begin < cut:
            one = line[index]
            first = one.end - (ends[index] - begin)
            size = min(cut, ends[index]) - begin
            task.append(ReadRange(one.topic, one.partition, first, first + size))
            begin += size
            if begin == ends[index]:
                index += 1
        tasks.append(task)
    return tasks


def _near_end(cut: int, ends: list[int], size: int) -> int:
    """Return the end of a range that is near enough to a cut, else the cut."""
    index = bisect_left(ends, cut)
    near = min(ends[max(0, index - 1) : index + 1], key=lambda end: abs(end - cut))
    return near if abs(near - cut) <= SLIVER * size else cut


def _bounded(task: list[ReadRange], records_max: int) -> list[list[ReadRange]]:
    """Split a task so that no part has more records than these; no range alone has."""
    parts: list[list[ReadRange]] = []
    size = records_max
    for one in task:
        if size + one.size > records_max:
            parts.append([])
            size = 0
        parts[-1].append(one)
        size += one.size
    return parts


def _joined(task: list[ReadRange]) -> list[ReadRange]:
    """Join the parts of one partition, which follow each other: a task has one range of each."""
    ranges: list[ReadRange] = []
    for one in task:
        last = ranges[-1] if ranges else None
        if last is not None and _is_next(last, one):
            ranges[-1] = ReadRange(one.topic, one.partition, last.first, one.end)
        else:
            ranges.append(one)
    return ranges


def _is_next(one: ReadRange, other: ReadRange) -> bool:
    """Return true if a range begins where another one of its partition ends."""
    is_same = (one.topic, one.partition) == (other.topic, other.partition)
    return is_same and one.end == other.first
