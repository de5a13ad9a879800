"""A replay without Spark: what reaches the topic, once, wherever it is killed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tarry.client import SET, Admin, ConfigChange, Consumer, Producer
from tarry.spark.archive.archive import ArchiveOptions, archive
from tarry.spark.archive.contents import ArchiveContents, times_of
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused, OffsetSpan
from tarry.spark.archive.workers import OwnWorker
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.replay.plan import (
    AskedReplay,
    FrozenReplay,
    ReplayRefused,
    TargetTimes,
    files_of,
    next_round,
    spans_of,
    too_old,
)
from tarry.spark.replay.replay import Replayer, ReplayOptions, ReplaySummary, replay
from tarry.spark.replay.state import ReplayState
from tarry.spark.writing.publishing import Publishing
from tarry.testing import Tarry

pytest.importorskip("pyarrow")

HOUR_MS = 3_600_000
NOON_MS = 1_760_000_000_000 // HOUR_MS * HOUR_MS
COUNT = 60

# Key, value, time, headers.
Row = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]


@pytest.fixture(scope="module")
def lake(shared: Tarry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of `orders`, in two rounds, whose hours have offsets in turns."""
    path = tmp_path_factory.mktemp("lake")
    shared.topic("orders", partitions=2, retention_ms=-1)
    for begin in (0, COUNT // 2):
        with Producer(bootstrap_servers=shared.bootstrap) as producer:
            for number in range(begin, begin + COUNT // 2):
                producer.send(
                    "orders",
                    None if number == 7 else b"%d" % number,
                    key=None if number % 5 == 0 else b"k%d" % (number % 7),
                    partition=number % 2,
                    timestamp=NOON_MS + number % 3 * HOUR_MS + number,
                    headers=[("n", b"%d" % number), ("empty", None)] if number % 4 == 0 else None,
                )
        choice = TopicChoice(names=("orders",))
        list(archive(None, choice, path, ArchiveOptions({"bootstrap.servers": shared.bootstrap})))
    return path


@pytest.fixture
def broker(shared: Tarry) -> Iterator[Tarry]:
    """The broker, with an empty topic `again` of two partitions."""
    shared.topic("again", partitions=2, retention_ms=-1)
    yield shared
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_topics(["again"])


def options(broker: Tarry, state: Path, **changed: Any) -> ReplayOptions:
    given: dict[str, Any] = {"topic": "orders", "to": "again", "state": state, **changed}
    return ReplayOptions({"bootstrap.servers": broker.bootstrap}, **given)


def run(broker: Tarry, lake: Path, state: Path, **changed: Any) -> ReplaySummary:
    *_, last = replay(None, lake, options(broker, state, **changed))
    return last


def read(broker: Tarry, topic: str, partitions: int = 2) -> dict[int, list[Row]]:
    """Every record of a topic, in the order of its partitions."""
    found: dict[int, list[Row]] = {partition: [] for partition in range(partitions)}
    places = [(topic, partition) for partition in found]
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(*place) < end for place, end in ends.items()):
            for group in consumer.poll(1.0):
                found[group.partition] += [
                    (one.key, one.value, one.timestamp, list(one.headers)) for one in group.records
                ]
    return found


def test_everything_is_kept_and_a_finished_replay_does_nothing(
    broker: Tarry, lake: Path, tmp_path: Path
) -> None:
    first = run(broker, lake, tmp_path)
    again = run(broker, lake, tmp_path)

    assert read(broker, "again") == read(broker, "orders")
    assert (first.records, first.offsets, first.offsets_total) == (COUNT, COUNT, COUNT)
    assert (first.is_finished, first.was_finished) == (True, False)
    assert (again.records, again.was_finished) == (COUNT, True)


def test_a_replay_to_another_cluster_is_not_the_one_that_is_finished(
    broker: Tarry, lake: Path, tmp_path: Path
) -> None:
    run(broker, lake, tmp_path)

    with Tarry() as other:
        other.topic("again", partitions=2)
        with pytest.raises(ReplayRefused, match=r"a replay to cluster .* cluster .* \(--state"):
            run(other, lake, tmp_path)
        assert other.records("again") == []
        assert run(other, lake, tmp_path / "new").records == COUNT


@pytest.mark.parametrize("records_max", [COUNT, COUNT // 2])
def test_a_replay_to_a_topic_that_was_made_anew_is_not_the_one_that_was_begun(
    broker: Tarry, lake: Path, tmp_path: Path, records_max: int
) -> None:
    next(replay(None, lake, options(broker, tmp_path, round_records_max=records_max)))
    broker.admin.delete_topics(["again"])
    with pytest.raises(ReplayRefused, match=r"'again' does not exist.* \(--state"):
        run(broker, lake, tmp_path)
    broker.topic("again", partitions=2)

    with pytest.raises(ReplayRefused, match=r"again was deleted and made anew .* \(--state"):
        run(broker, lake, tmp_path)

    assert broker.records("again") == []


class ThievishWorker(OwnWorker):
    """A worker behind whose second round the topic is deleted and made anew."""

    def __init__(self, broker: Tarry) -> None:
        self.broker = broker
        self.rounds = 0

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        told = super().each(work, count)
        self.rounds += 1
        if self.rounds == 2:
            self.broker.admin.delete_topics(["again"])
            self.broker.topic("again", partitions=2)
        return told


def test_a_replay_that_cannot_go_on_says_what_can_be_done(
    broker: Tarry, lake: Path, tmp_path: Path
) -> None:
    made = options(broker, tmp_path, round_records_max=25)

    with pytest.raises(ReplayRefused, match=r"stopped in round 2: .* made anew") as told:
        list(Replayer(ThievishWorker(broker), lake, made).run({"again": (0, 1)}))

    assert "of all of it, with a state directory of its own (--state DIR" in str(told.value)
    assert f"that of this one is {tmp_path}" in str(told.value)
    assert "records of the rounds before" not in str(told.value)
    for false in ("checkpoint of its own", "goes on"):
        assert false not in str(told.value)


def test_topics_of_any_name_have_a_directory_of_their_own(tmp_path: Path) -> None:
    paths = [
        ReplayOptions({}, "a" * 249, f"{'b' * 248}{last}").state_path(tmp_path) for last in "cd"
    ]

    assert all(len(path.name) <= 255 for path in paths)
    assert paths[0] != paths[1]


def test_records_of_a_time_are_replayed(broker: Tarry, lake: Path, tmp_path: Path) -> None:
    begin, end = NOON_MS + HOUR_MS, NOON_MS + HOUR_MS + 31

    summary = run(broker, lake, tmp_path, from_ms=begin, until_ms=end)

    expected = {
        partition: [row for row in rows if begin <= row[2] < end]
        for partition, rows in read(broker, "orders").items()
    }
    assert read(broker, "again") == expected
    assert summary.records == sum(len(rows) for rows in expected.values()) == 10


def test_offsets_name_partitions_and_bounds(broker: Tarry, lake: Path, tmp_path: Path) -> None:
    run(broker, lake, tmp_path, from_offsets={1: 5}, until_offsets={1: 9})

    assert read(broker, "again") == {0: [], 1: read(broker, "orders")[1][5:9]}


def test_keys_decide_where_they_are_let(broker: Tarry, lake: Path, tmp_path: Path) -> None:
    for name in ("wider", "keyed"):
        broker.topic(name, partitions=3, retention_ms=-1)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        handles = {b"k%d" % key: producer.send("keyed", b"", key=b"k%d" % key) for key in range(7)}
    partition_of = {key: handle.result().partition for key, handle in handles.items()}

    run(broker, lake, tmp_path, to="wider", keep_partitions=False, round_records_max=20)

    found = read(broker, "wider", partitions=3)
    assert all(
        partition_of[row[0]] == partition
        for partition, rows in found.items()
        for row in rows
        if row[0] is not None
    )
    assert sum(len(rows) for rows in found.values()) == COUNT
    for source in read(broker, "orders").values():
        for key in partition_of:
            kept = [row for row in source if row[0] == key]
            there = [row for row in found[partition_of[key]] if row in kept]
            assert there == kept


# --- Ends of a run at every step.


class Killed(BaseException):
    """The end of a process, as a test has it."""


def trap(monkeypatch: pytest.MonkeyPatch, effect: str, nth: int, *, is_behind: bool) -> None:
    """End the next run before or behind the nth effect of a name."""
    carry_out: Any = Publishing._carry_out
    counts = {effect: 0}

    def trapped(self: Publishing, asked: Any) -> object:
        is_it = type(asked).__name__ == effect
        counts[effect] += is_it
        is_now = is_it and counts[effect] == nth
        if is_now and not is_behind:
            raise Killed
        result: object = carry_out(self, asked)
        if is_now:
            raise Killed
        return result

    monkeypatch.setattr(Publishing, "_carry_out", trapped)


EFFECTS = ("CreatePlan", "SendRound", "MarkDone", "RemoveFiles")


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_killed_replay_goes_on_without_loss_or_double(
    broker: Tarry,
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    effect: str,
    is_behind: bool,
) -> None:
    with monkeypatch.context() as patch:
        trap(patch, effect, 2, is_behind=is_behind)
        with pytest.raises(Killed):
            run(broker, lake, tmp_path, round_records_max=25)

    summary = run(broker, lake, tmp_path, round_records_max=25)

    assert read(broker, "again") == read(broker, "orders")
    assert (summary.records, summary.offsets) == (COUNT, COUNT)


def offsets_in(told: str, option: str) -> dict[int, int]:
    """Return the offsets of an option of the command that a sentence names."""
    found = re.search(rf"{option} ([0-9=,]+)", told)
    assert found is not None
    return {int(one.split("=")[0]): int(one.split("=")[1]) for one in found[1].split(",")}


def test_the_rest_of_a_replay_that_cannot_go_on_is_replayed_as_its_refusal_says(
    broker: Tarry, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        trap(patch, "SendRound", 2, is_behind=False)
        with pytest.raises(Killed):
            run(broker, lake, tmp_path, round_records_max=25)
    for path in tmp_path.glob("task-*"):
        path.unlink()

    with pytest.raises(ReplayRefused, match="missing or damaged") as refused:
        run(broker, lake, tmp_path, round_records_max=25)
    told = str(refused.value)
    assert told.endswith(
        ". The 24 records of the rounds before are in again; of this round, from "
        "0=12,1=12 on, some may be"
    )
    begins, until = offsets_in(told, "--from"), offsets_in(told, "--until")
    run(broker, lake, tmp_path / "rest", from_offsets=begins, until_offsets=until)

    assert read(broker, "again") == read(broker, "orders")


class KilledState(ReplayState):
    """A state whose process ends before or behind a file is written."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        self.step = step

    def freeze(self, *arguments: Any) -> FrozenReplay:
        return self._killed("freeze", lambda: super(KilledState, self).freeze(*arguments))

    def write_round(self, *arguments: Any) -> Any:
        return self._killed("round", lambda: super(KilledState, self).write_round(*arguments))

    def finish(self, *arguments: Any) -> None:
        self._killed("finish", lambda: super(KilledState, self).finish(*arguments))

    def _killed(self, step: str, write: Callable[[], Any]) -> Any:
        if self.step == f"before {step}":
            raise Killed
        result = write()
        if self.step == f"behind {step}":
            raise Killed
        return result


@pytest.mark.parametrize("step", ["freeze", "round", "finish"])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_replay_killed_at_its_own_files_goes_on(
    broker: Tarry, lake: Path, tmp_path: Path, step: str, when: str
) -> None:
    killed = Replayer(OwnWorker(), lake, options(broker, tmp_path, round_records_max=25))
    killed._state = KilledState(tmp_path, f"{when} {step}")
    with pytest.raises(Killed):
        list(killed.run({"again": (0, 1)}))

    run(broker, lake, tmp_path, round_records_max=40)

    assert read(broker, "again") == read(broker, "orders")


class SlowWorker(OwnWorker):
    """A worker while which another run of the same replay comes to its end."""

    def __init__(self, broker: Tarry, lake: Path, state: Path) -> None:
        self.another = lambda: run(broker, lake, state)

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        told = super().each(work, count)
        self.another()
        return told


def test_two_runs_at_once_write_each_record_once(broker: Tarry, lake: Path, tmp_path: Path) -> None:
    slow = Replayer(
        SlowWorker(broker, lake, tmp_path), lake, options(broker, tmp_path, round_records_max=25)
    )

    *_, last = slow.run({"again": (0, 1)})

    assert last.is_finished
    assert read(broker, "again") == read(broker, "orders")
    assert not list(tmp_path.glob("task-*"))


def test_a_rate_is_kept_by_pauses(broker: Tarry, lake: Path, tmp_path: Path) -> None:
    waited: list[float] = []
    made = options(broker, tmp_path, rate=20)
    replayer = Replayer(OwnWorker(), lake, made, pause=waited.append, clock=lambda: 0.0)

    rounds = len(list(replayer.run({"again": (0, 1)})))

    assert rounds == 3
    assert waited == [0.0, 1.0, 2.0]
    assert read(broker, "again") == read(broker, "orders")


def test_a_topic_that_deletes_such_old_records_is_told(
    broker: Tarry, lake: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker.topic("short", partitions=2, retention_ms=HOUR_MS)

    run(broker, lake, tmp_path / "kept")
    kept = caplog.text
    run(broker, lake, tmp_path / "deleted", to="short")

    assert "deletes records" not in kept
    assert "the topic short soon deletes records as old as some of these" in caplog.text


def test_a_topic_that_takes_no_such_old_records_is_refused_before_anything_is_frozen(
    broker: Tarry, lake: Path, tmp_path: Path
) -> None:
    broker.topic("young", partitions=2, message_timestamp_before_max_ms=HOUR_MS)

    with pytest.raises(ReplayRefused, match="the topic young takes no records as old as some"):
        run(broker, lake, tmp_path / "state", to="young")

    assert not (tmp_path / "state").exists()
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        wanted = ConfigChange("message.timestamp.before.max.ms", SET, str(2**63 - 1))
        admin.change_topic_configs("young", [wanted])
    assert run(broker, lake, tmp_path / "state", to="young").records == COUNT


# --- Refusals.


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"topic": "nothing"}, "no topic 'nothing'; it has orders"),
        ({"to": "nowhere"}, "nowhere does not exist: make it first"),
        ({"from_offsets": {9: 1}}, "no partition 9 of orders; it has 0, 1"),
        ({"from_ms": NOON_MS + 24 * HOUR_MS}, "no records of orders in this range"),
        ({"from_offsets": {0: 5}, "until_offsets": {0: 5}}, "no records of orders"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    broker: Tarry, lake: Path, tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ReplayRefused, match=sentence):
        run(broker, lake, tmp_path / "state", **changed)

    assert not (tmp_path / "state").exists()


def test_partitions_that_the_target_lacks_are_refused(
    broker: Tarry, lake: Path, tmp_path: Path
) -> None:
    broker.topic("narrow", partitions=1)

    with pytest.raises(ReplayRefused, match="narrow has 1 partitions, and records of partition 1"):
        run(broker, lake, tmp_path, to="narrow")


def test_the_state_of_another_replay_is_refused(broker: Tarry, lake: Path, tmp_path: Path) -> None:
    run(broker, lake, tmp_path)

    with pytest.raises(ReplayRefused, match="is the state of another replay"):
        run(broker, lake, tmp_path, from_ms=NOON_MS)


def test_no_archive_is_refused(broker: Tarry, tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefused, match="is no archive"):
        run(broker, tmp_path, tmp_path / "state")


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"round_records_max": 0}])
def test_wrong_options_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ReplayRefused):
        ReplayOptions({}, "orders", "again", **wrong)


# --- Plans, as pure functions.


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 60)), min_size=1, max_size=4),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_rounds_cover_each_span_once_and_in_order(
    bounds: list[tuple[int, int]], sizes: list[int]
) -> None:
    spans = [
        OffsetSpan(partition, first, first + size) for partition, (first, size) in enumerate(bounds)
    ]
    frozen = FrozenReplay("id", AskedReplay("orders", "again"), spans)
    positions = {span.partition: span.first for span in spans}
    current, taken = None, 0

    while (current := next_round(frozen, current, 0, sizes[taken % len(sizes)])) is not None:
        assert current.number == taken
        taken += 1
        for span in current.spans:
            assert span.first == positions[span.partition] < span.end
            positions[span.partition] = span.end

    assert positions == {span.partition: span.end for span in spans}


def file_of(path: str, first: int, end: int) -> ArchivedFile:
    return ArchivedFile(path, "", "orders", 0, first, end, end - first, 0, "")


def test_files_of_other_hours_are_left_out() -> None:
    files = [
        file_of(f"topic=orders/date=2025-10-09/hour={hour:02}/f.parquet", first, first + 10)
        for hour, first in ((8, 0), (9, 10), (10, 20))
    ]
    contents = ArchiveContents("hour", {("orders", 0): files}, {("orders", 0): (0, 30)})
    begin_ms = 1_760_000_400_000

    assert times_of(files[1], "hour") == (begin_ms, begin_ms + HOUR_MS)
    assert times_of(files[1], "none") is None
    assert spans_of(AskedReplay("orders", "x", True, begin_ms, begin_ms + 1), contents) == [
        OffsetSpan(0, 10, 20)
    ]


def test_files_that_end_or_begin_at_a_bound_are_left_out() -> None:
    files = [
        file_of(f"topic=orders/date=2025-10-09/hour={hour:02}/f.parquet", first, first + 10)
        for hour, first in ((8, 0), (9, 10), (10, 20))
    ]
    contents = ArchiveContents("hour", {("orders", 0): files}, {("orders", 0): (0, 30)})
    begin_ms = 1_760_000_400_000

    def found(from_ms: int, until_ms: int) -> list[int]:
        asked = AskedReplay("orders", "x", True, from_ms, until_ms)
        return [one.first for one in files_of(asked, contents, OffsetSpan(0, 0, 30))]

    assert found(begin_ms, begin_ms + HOUR_MS) == [10]
    assert found(begin_ms - 1, begin_ms + HOUR_MS + 1) == [0, 10, 20]


@pytest.mark.parametrize(("ahead_ms", "is_taken", "is_kept"), [(0, False, False), (1, True, True)])
def test_records_whose_hour_ends_at_a_limit_of_the_topic_are_beyond_it(
    ahead_ms: int, *, is_taken: bool, is_kept: bool
) -> None:
    file = file_of("topic=orders/date=2025-10-09/hour=09/f.parquet", 0, 10)
    contents = ArchiveContents("hour", {("orders", 0): [file]}, {("orders", 0): (0, 10)})
    limit_ms = 1_760_000_400_000 + HOUR_MS - ahead_ms
    asked, spans = AskedReplay("orders", "x", True), [OffsetSpan(0, 0, 10)]

    told = too_old(asked, spans, contents, TargetTimes(kept_from_ms=limit_ms))

    assert (told is None) == is_kept
    with nullcontext() if is_taken else pytest.raises(ReplayRefused, match="takes no records"):
        too_old(asked, spans, contents, TargetTimes(taken_from_ms=limit_ms))
