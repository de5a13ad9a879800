"""Tables whose rows are due later: an ArrowProducer against a broker with a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tarry.base.limits import SCHEDULE_HEADERS_MAX, SCHEDULE_PLACES_MAX
from tarry.client import BrokerError, Producer, RecordTooLarge, SchedulingUnsupported
from tarry.client.core.producer.partitioner import partition_by_crc32, partition_for_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tarry.client.arrow import ArrowProducer, TableReceipt
    from tarry.testing import Tarry

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'tarry[arrow]'")

HOUR_MS = 3_600_000
BY_HEADER = {"delay.enable": "true", "delay.source": "header"}
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}
SOURCES = pytest.mark.parametrize("configs", [BY_HEADER, BY_TIMESTAMP], ids=["header", "timestamp"])
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture
def producer(tarry: Tarry) -> Iterator[ArrowProducer]:
    from tarry.client.arrow import ArrowProducer

    with ArrowProducer(bootstrap_servers=tarry.bootstrap) as made:
        yield made


def send(producer: ArrowProducer, **columns: Any) -> TableReceipt:
    return producer.send("a", pa.table(columns)).result(60)


def values(tarry: Tarry) -> list[bytes | None]:
    """Return what has come, in its order."""
    return [record.value for record in tarry.records("a")]


def now_ms(tarry: Tarry) -> int:
    return int(tarry.clock.now_ms)


def utc_times(*times_ms: int | None, unit: str = "ms") -> Any:
    column = pa.array(times_ms, pa.timestamp("ms", "UTC"))
    return column.cast(pa.timestamp(unit, "UTC"), safe=False)


@SOURCES
@pytest.mark.parametrize(
    "kind", ["timestamp", "milliseconds", "text", "encoded text", "duration", "duration as int"]
)
def test_each_row_comes_at_its_time_and_one_without_at_once(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str], kind: str
) -> None:
    tarry.topic("a", **configs)
    at_ms = [now_ms(tarry) + 2 * HOUR_MS, None, now_ms(tarry) + HOUR_MS]
    texts = pa.array(["2h", None, "59m60s"])
    column = {
        "timestamp": {"deliver_at": utc_times(*at_ms)},
        "milliseconds": {"deliver_at": at_ms},
        "text": {"deliver_after": texts.cast(pa.string_view())},
        "encoded text": {"deliver_after": texts.dictionary_encode()},
        "duration": {"deliver_after": [timedelta(hours=2), None, timedelta(hours=1)]},
        "duration as int": {"deliver_after": pa.array([2 * HOUR_MS, None, HOUR_MS], pa.uint32())},
    }[kind]

    receipt = send(producer, value=["two", "now", "one"], **column)
    come = [values(tarry)]
    for step in ("59m", "2m", "58m", "2m"):
        tarry.clock.advance(step)
        come.append(values(tarry))

    assert receipt.row_count == 3
    assert come == [
        [b"now"],
        [b"now"],
        [b"now", b"one"],
        [b"now", b"one"],
        [b"now", b"one", b"two"],
    ]
    assert list(tarry.records("a")[0].headers) == []


@SOURCES
def test_the_receipt_speaks_of_all_rows_and_a_parked_one_has_no_offset(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str]
) -> None:
    tarry.topic("a", **configs)

    receipt = send(
        producer,
        value=["one", "now", "two", "one more", "later"],
        deliver_after=["1h", None, "2h", "1h", None],
    )

    assert receipt.is_done
    assert receipt.row_count == 5
    first, *others = receipt.batches
    assert (first.row_count, first.offset, first.is_parked) == (2, 0, False)
    assert {(batch.offset, batch.is_parked) for batch in others} == {(-1, True)}
    assert all(batch.s_offset >= 0 for batch in others)
    assert [batch.row_count for batch in others] == ([3] if configs == BY_HEADER else [2, 1])


@SOURCES
def test_many_due_times_hold_none_of_the_others_up(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str]
) -> None:
    tarry.topic("a", partitions=2, **configs)
    minutes = [7, 3, 3, 9, 1, 3]

    send(
        producer,
        key=["k0", "k1", None, "k3", None, "k5"],
        value=[f"{minute}" for minute in minutes],
        deliver_after=[f"{minute}m" for minute in minutes],
    )
    come = []
    for _ in range(10):
        tarry.clock.advance("1m")
        come.append(len(values(tarry)))

    assert come == [1, 1, 4, 4, 4, 4, 5, 5, 6, 6]


@SOURCES
def test_rows_that_wait_take_no_ordinary_rows_along(tarry: Tarry, configs: dict[str, str]) -> None:
    from tarry.client.arrow import ArrowProducer

    tarry.topic("a", **configs)

    with ArrowProducer(bootstrap_servers=tarry.bootstrap, linger_ms=60_000) as producer:
        receipts = [
            producer.send("a", pa.table({"value": ["before"]})),
            producer.send("a", pa.table({"value": ["later"], "deliver_after": ["1h"]})),
            producer.send("a", pa.table({"value": ["after"]})),
        ]
        producer.flush()

    assert [receipt.batches[0].is_parked for receipt in receipts] == [False, True, False]
    assert values(tarry) == [b"before", b"after"]


@SOURCES
def test_tables_of_many_chunks_and_parts_keep_each_row(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarry.client.arrow.table_parts.PART_ROWS_MAX", 7)
    tarry.topic("a", partitions=3, **configs)
    numbers = range(40)
    own = [[("n", b"%d" % number), ("x", None)] if number % 3 else None for number in numbers]
    table = pa.table(
        {
            "key": pa.array([b"%d" % (number % 5) for number in numbers]).cast(pa.binary_view()),
            "value": pa.array([f"{number}" for number in numbers]).cast(pa.string_view()),
            "headers": pa.array(own, pa.map_(pa.string(), pa.binary())),
            "deliver_after": [f"{number % 4}s" if number % 2 else None for number in numbers],
        }
    )
    chunks = pa.concat_tables([table.slice(0, 13), table.slice(13, 1), table.slice(14)])

    receipt = producer.send_and_wait("a", chunks)
    tarry.clock.advance("1m")

    assert receipt.row_count == 40
    found = {int(record.value or b""): record for record in tarry.records("a")}
    assert sorted(found) == [*numbers]
    for number, record in found.items():
        assert record.key == b"%d" % (number % 5)
        assert list(record.headers)[: len(own[number] or ())] == (own[number] or [])
        names = {name for name, _ in record.headers}
        assert ("x-deliver-after" in names) == (number % 2 == 1 and configs == BY_HEADER)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_are_rounded_up_to_whole_milliseconds(
    tarry: Tarry, producer: ArrowProducer, unit: str
) -> None:
    tarry.topic("a", **BY_HEADER)
    due_ms = now_ms(tarry) + HOUR_MS
    count = {"us": 1_000, "ns": 1_000_000}[unit]

    send(
        producer,
        value=["at", "after"],
        deliver_at=pa.array([due_ms * count + 1, None], pa.timestamp(unit, "Europe/Zurich")),
        deliver_after=pa.array([None, 5 * count + 1], pa.duration(unit)),
    )
    tarry.clock.advance("61m")

    headers = {record.value: dict(record.headers) for record in tarry.records("a")}
    assert headers[b"at"]["x-deliver-at"] == b"%d" % (due_ms + 1)
    assert headers[b"after"]["x-deliver-after"] == b"6"


@SOURCES
def test_a_row_becomes_what_send_makes_of_a_record(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str]
) -> None:
    tarry.topic("a", **configs)
    at = datetime.fromtimestamp(now_ms(tarry) // 1_000 + 5, UTC)
    ids = {"schedule_id": b"i"} if configs == BY_HEADER else {}

    with Producer(bootstrap_servers=tarry.bootstrap) as single:
        single.send_and_wait("a", b"v", key=b"k", headers=[("h", b"1")], deliver_at=at, **ids)
    tarry.clock.advance("1m")
    send(
        producer,
        key=["k"],
        value=["v"],
        headers=pa.array([[("h", b"1")]], PAIRS),
        deliver_at=pa.array([at], pa.timestamp("s", "UTC")),
        **{name: pa.array([one]) for name, one in ids.items()},
    )
    tarry.clock.advance("1m")

    one, other = tarry.records("a")
    assert (one.key, one.value, one.headers) == (other.key, other.value, other.headers)
    if configs == BY_TIMESTAMP:
        assert one.timestamp == other.timestamp == int(at.timestamp() * 1_000)


def test_ids_choose_partitions_replace_and_are_cancelled(
    tarry: Tarry, producer: ArrowProducer
) -> None:
    tarry.topic("a", partitions=3, **BY_HEADER)
    ids = [f"call-{number}" for number in range(20)]
    send(producer, value=ids, deliver_after=["1h"] * 20, schedule_id=ids)

    send(producer, value=["moved"], deliver_after=["2h"], schedule_id=[b"call-3"])
    with Producer(bootstrap_servers=tarry.bootstrap) as single:
        single.cancel("a", schedule_id="call-7").result(10)
    tarry.clock.advance("61m")
    places = {record.value: record.partition for record in tarry.records("a")}
    tarry.clock.advance("61m")

    expected = {one.encode(): partition_for_key(one.encode(), 3) for one in ids}
    del expected[b"call-3"], expected[b"call-7"]
    assert places == expected
    assert b"moved" in values(tarry)


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_a_key_and_a_partition_count_before_an_id(tarry: Tarry, partitioner: str) -> None:
    from tarry.client.arrow import ArrowProducer

    tarry.topic("a", partitions=4, **BY_HEADER)
    by_hash = {"murmur2": partition_for_key, "crc32": partition_by_crc32}[partitioner]

    with ArrowProducer({"partitioner": partitioner}, bootstrap_servers=tarry.bootstrap) as producer:
        send(
            producer,
            value=["by id", "by key", "by number", "empty key", "no id"],
            key=[None, b"key", None, b"", b"k"],
            partition=[None, None, 2, None, None],
            schedule_id=["i", "j", "k", "l", None],
        )

    places = {record.value: record.partition for record in tarry.records("a")}
    assert places == {
        b"by id": by_hash(b"i", 4),
        b"by key": by_hash(b"key", 4),
        b"by number": 2,
        b"empty key": by_hash(b"l" if partitioner == "crc32" else b"", 4),
        b"no id": by_hash(b"k", 4),
    }


def test_more_times_than_one_batch_may_have_are_in_several(tarry: Tarry) -> None:
    from tarry.client.arrow import ArrowProducer

    tarry.topic("a", **BY_HEADER)
    count = SCHEDULE_PLACES_MAX + 10

    with ArrowProducer(bootstrap_servers=tarry.bootstrap, batch_size=1_000_000) as producer:
        receipt = send(
            producer,
            value=pa.nulls(count, pa.binary()),
            deliver_after=[number % 9 + 1 for number in range(count)],
        )
    tarry.clock.advance("1m")

    assert receipt.row_count == count
    assert len(values(tarry)) == count


@pytest.mark.parametrize(
    ("configs", "columns", "error", "sentence"),
    [
        (
            BY_HEADER,
            {"deliver_at": [None, None, 5], "deliver_after": [None, "1s", "1s"]},
            ValueError,
            "row 2 of the table: deliver_at and deliver_after both say when",
        ),
        (
            BY_HEADER,
            {"deliver_at": [None, -1, None]},
            ValueError,
            "row 1 of the table: deliver_at=-1 is not between 1970",
        ),
        (
            BY_TIMESTAMP,
            {"deliver_after": [None, "1s", "soon"]},
            ValueError,
            "row 2 of the table: deliver_after='soon' is no duration",
        ),
        (
            BY_HEADER,
            {"deliver_after": [1, 1, 1], "schedule_id": ["i", "", "i"]},
            ValueError,
            "row 1 of the table: schedule_id has 0 bytes, not 1",
        ),
        (
            BY_TIMESTAMP,
            {"deliver_after": [None, 1, None], "timestamp": [1, 1, 1]},
            ValueError,
            "row 1 of the table: .*give timestamp or deliver_at, not both",
        ),
        (
            BY_TIMESTAMP,
            {
                "deliver_after": [None, 1, 1],
                "headers": pa.array([None, [], [("a", b""), ("x-deliver-at", b"5")]], PAIRS),
            },
            ValueError,
            "row 2 of the table: headers holds x-deliver-at, and deliver_at, deliver_after and",
        ),
        (
            BY_HEADER,
            {
                "deliver_after": [None, 1, 1],
                "headers": pa.array([None, [], [("a", b"")] * SCHEDULE_HEADERS_MAX], PAIRS),
            },
            ValueError,
            "row 2 of the table: it has 1001 headers, and a topic that delays by headers takes 100",
        ),
        (
            BY_HEADER,
            {"deliver_at": pa.array([None, None, 1], pa.timestamp("ms"))},
            ValueError,
            r"column deliver_at is of type timestamp\[ms\], which has no time zone",
        ),
        (
            BY_HEADER,
            {"deliver_at": ["tomorrow"] * 3},
            TypeError,
            "column deliver_at is of type string, and it must be a timestamp with a time zone, or",
        ),
        (
            BY_HEADER,
            {"deliver_after": [0.5] * 3},
            TypeError,
            "column deliver_after is of type double, and it must be a duration, texts",
        ),
        (
            BY_HEADER,
            {"schedule_id": [7] * 3},
            TypeError,
            "column schedule_id is of type int64, and it must be string or binary",
        ),
        (
            BY_HEADER,
            {"schedule_id": ["i"] * 3, "partition": [0.5] * 3},
            TypeError,
            "column partition is of type double",
        ),
        (
            BY_HEADER,
            {"schedule_id": ["i"] * 3, "partition": [0, None, 1]},
            ValueError,
            "column partition goes from 0 to 1, and the topic has the partitions 0 to 0",
        ),
        (BY_TIMESTAMP, {"schedule_id": [None, "i", None]}, SchedulingUnsupported, "delay.source="),
        ({}, {"schedule_id": [None, "i", None]}, SchedulingUnsupported, "does not delay records"),
        (
            {"delay.enable": "true", "delay.default.ms": "1000"},
            {"deliver_after": ["1m", None, None]},
            SchedulingUnsupported,
            "delays all its records alike",
        ),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused_before_its_first_row(
    tarry: Tarry,
    producer: ArrowProducer,
    configs: dict[str, str],
    columns: dict[str, Any],
    error: type[Exception],
    sentence: str,
) -> None:
    tarry.topic("a", **configs)

    with pytest.raises(error, match=sentence):
        send(producer, value=["x", "y", "z"], **columns)

    producer.flush()
    assert producer.acknowledged == 0
    assert values(tarry) == []


@SOURCES
def test_an_error_names_the_row_of_the_table_and_not_that_of_a_part(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str]
) -> None:
    tarry.topic("a", **configs)
    no_name = pa.array([[], [], [], [(None, b"")]], PAIRS)
    large = [b"", b"", b"", bytes(2_000_000)]

    for after in ([None, 2, 1, 1], [2, 1, 1, None]):
        with pytest.raises(ValueError, match="row 3: a header's key is null"):
            send(producer, value=["x"] * 4, headers=no_name, deliver_after=after)
        with pytest.raises(RecordTooLarge, match="row 3 of the table: a record of 2000027 bytes"):
            send(producer, value=large, deliver_after=after)

    producer.flush()
    assert producer.acknowledged == 0


def test_a_row_that_its_headers_make_too_large_is_refused(
    tarry: Tarry, producer: ArrowProducer
) -> None:
    tarry.topic("a", **BY_HEADER)
    largest = producer.settings.request_bytes_max - 61 - 27
    table = {"value": [b"", bytes(largest)]}
    send(producer, **table)

    with pytest.raises(RecordTooLarge, match="row 0 of those that are due later or have an id"):
        send(producer, **table, deliver_after=[None, "1h"])

    producer.flush()
    assert producer.acknowledged == 2


@SOURCES
def test_a_time_that_the_topic_refuses_fails_no_ordinary_row(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str]
) -> None:
    tarry.topic("a", **configs, **{"delay.max.ms": "60000"})
    table = pa.table({"value": ["later", "now"], "deliver_after": ["2h", None]})

    receipt = producer.send("a", table)

    with pytest.raises(BrokerError, match="INVALID_TIMESTAMP"):
        receipt.result(60)
    assert [batch.error is None for batch in receipt.batches] == [True, False]
    assert values(tarry) == [b"now"]


def test_a_table_with_a_column_twice_is_refused(producer: ArrowProducer) -> None:
    table = pa.table([["v"], ["1s"], ["2s"]], names=["value", "deliver_after", "deliver_after"])

    with pytest.raises(ValueError, match="column 'deliver_after' is there 2 times"):
        producer.send("a", table)


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.string(), pa.duration("ms"), pa.dictionary(pa.int8(), pa.string())]
)
def test_nulls_alone_ask_for_nothing(tarry: Tarry, producer: ArrowProducer, kind: Any) -> None:
    tarry.topic("a")

    receipt = send(producer, value=["x", "y"], deliver_after=pa.nulls(2, kind))

    assert [batch.is_parked for batch in receipt.batches] == [False]
    assert values(tarry) == [b"x", b"y"]


@SOURCES
def test_what_is_due_already_comes_at_once(
    tarry: Tarry, producer: ArrowProducer, configs: dict[str, str]
) -> None:
    tarry.topic("a", **configs)

    send(producer, value=["old", "now"], deliver_at=[now_ms(tarry) - HOUR_MS, None])
    send(producer, value=["none"], deliver_after=["0s"])

    assert sorted(one or b"" for one in values(tarry)) == [b"none", b"now", b"old"]
