"""Plan of tasks: every offset of every range once, in tasks of nearly one size."""

from __future__ import annotations

from hypothesis import example, given, strategies as st

from tarry.spark.reading.plan import ReadRange, TaskLimits, plan_tasks

Sizes = list[int]


def ranges_of(sizes: Sizes) -> list[ReadRange]:
    return [ReadRange("orders", partition, 100, 100 + size) for partition, size in enumerate(sizes)]


def joined(tasks: list[list[ReadRange]]) -> list[ReadRange]:
    """The ranges of all tasks, with the parts of one put together again."""
    found: list[ReadRange] = []
    for one in (part for task in tasks for part in task):
        last = found[-1] if found else None
        if last is not None and (last.partition, last.end) == (one.partition, one.first):
            found[-1] = ReadRange(one.topic, one.partition, last.first, one.end)
        else:
            found.append(one)
    return found


LIMITS = st.builds(
    TaskLimits,
    cores=st.integers(1, 16),
    tasks=st.none() | st.integers(1, 50),
    partitions_min=st.none() | st.integers(1, 50),
    partition_records_max=st.none() | st.integers(1, 100_000),
)


@given(st.lists(st.integers(0, 200) | st.integers(0, 100_000), max_size=20), LIMITS)
@example([120_000], TaskLimits(cores=3, partition_records_max=100_000))
def test_every_offset_is_in_one_task(sizes: Sizes, limits: TaskLimits) -> None:
    most = limits.partition_records_max
    if most is not None and sum(sizes) > 1_000 * most:
        # Not millions of tasks.
        return
    tasks = plan_tasks(ranges_of(sizes), limits)

    assert joined(tasks) == [one for one in ranges_of(sizes) if one.size > 0]
    assert all(part.size > 0 for task in tasks for part in task)
    assert all(tasks)
    for task in tasks:
        places = [(part.topic, part.partition) for part in task]
        assert len(set(places)) == len(places)


@given(st.lists(st.integers(0, 100_000), max_size=20), LIMITS)
def test_there_are_as_many_tasks_as_are_asked_for(sizes: Sizes, limits: TaskLimits) -> None:
    limits = TaskLimits(limits.cores, limits.tasks, limits.partitions_min)
    tasks = plan_tasks(ranges_of(sizes), limits)

    if limits.tasks is not None:
        assert len(tasks) == min(limits.tasks, sum(sizes))
    else:
        assert len(tasks) >= min(limits.partitions_min or 0, sum(sizes))


@given(st.lists(st.integers(0, 1_000), max_size=20), st.integers(1, 300), st.integers(1, 8))
def test_no_task_has_more_records_than_allowed(sizes: Sizes, most: int, cores: int) -> None:
    tasks = plan_tasks(ranges_of(sizes), TaskLimits(cores, partition_records_max=most))

    assert all(sum(part.size for part in task) <= most for task in tasks)


def test_few_records_are_one_task() -> None:
    assert len(plan_tasks(ranges_of([10] * 100), TaskLimits(cores=8))) == 1


def test_many_records_are_a_task_a_core_in_whole_partitions() -> None:
    tasks = plan_tasks(ranges_of([100_000, 101_000, 99_000, 100_000]), TaskLimits(cores=2))

    assert [[part.partition for part in task] for task in tasks] == [[0, 1], [2, 3]]


def test_a_large_partition_is_split() -> None:
    tasks = plan_tasks(ranges_of([100_000, 10]), TaskLimits(cores=4))

    assert [[(part.partition, part.size) for part in task] for task in tasks] == [
        [(0, 25_002)],
        [(0, 25_003)],
        [(0, 25_002)],
        [(0, 24_993), (1, 10)],
    ]


def test_parts_of_one_partition_that_meet_in_a_task_are_one_range() -> None:
    tasks = plan_tasks(ranges_of([120_000]), TaskLimits(cores=3, partition_records_max=100_000))

    assert [[(part.first, part.end) for part in task] for task in tasks] == [
        [(100, 40_100)],
        [(40_100, 80_100)],
        [(80_100, 120_100)],
    ]


def test_ten_thousand_partitions_are_as_many_tasks_as_cores() -> None:
    tasks = plan_tasks(ranges_of([100] * 10_000), TaskLimits(cores=4))

    assert len(tasks) == 4
