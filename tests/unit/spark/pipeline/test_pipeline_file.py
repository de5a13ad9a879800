"""Pipeline file: what is read of it, and each mistake with its line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarry.spark.pipeline.file.mistakes import PipelineRefused
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.file.values import Start
from tarry.spark.pipeline.stages import UnknownStage, choose, stages_of
from tarry.spark.pipeline.told_plan import plan_lines
from tarry.spark.pipeline.topics import PipelineTopics, plan_missing

ORDERS = """\
name = "orders"
checkpoint = "lake/checkpoints/orders"

[source]
topics = ["orders"]
rate = 50_000

[decode]
format = "json"
schema = "order.json"

[check]
positive = "amount > 0"

[clean]
topic = "orders.clean"
rejected = "orders.rejected"

[archive]
path = "lake/orders"
topics = ["orders", "orders.clean"]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "order.json").write_text("{}")
    path = tmp_path / "orders.toml"
    path.write_text(ORDERS)
    return path


def changed(file: Path, old: str, new: str) -> Path:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    return file


def mistakes_of(file: Path) -> list[str]:
    with pytest.raises(PipelineRefused) as refused:
        read_pipeline(file, {})
    return refused.value.lines()


def test_paths_count_from_the_file_and_the_broker_from_the_environment(file):
    pipeline = read_pipeline(file, {"TARRY_BOOTSTRAP_SERVERS": "one:1"})

    assert pipeline.checkpoint == file.parent / "lake/checkpoints/orders"
    assert pipeline.archive.path == file.parent / "lake/orders"
    assert pipeline.reading() == {"bootstrap.servers": "one:1", "isolation.level": "read_committed"}
    assert read_pipeline(file, {}).source.bootstrap == "127.0.0.1:9092"
    changed(file, "rate =", 'bootstrap = "two:2"\nrate =')
    named = read_pipeline(file, {"TARRY_BOOTSTRAP_SERVERS": "one:1"})
    assert named.source.bootstrap == "two:2"


def test_a_path_may_begin_at_home(file, monkeypatch):
    monkeypatch.setenv("HOME", "/home/data")
    changed(file, "lake/checkpoints", "~/checkpoints")

    assert read_pipeline(file, {}).checkpoint == Path("/home/data/checkpoints/orders")
    changed(file, "~/checkpoints", "~nobody.of.this.name/checkpoints")
    assert "names a user whose home is not known" in mistakes_of(file)[0]


def test_a_mark_that_an_editor_has_put_at_the_begin_is_passed_over(file):
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())

    assert read_pipeline(file, {}).name == "orders"


def test_a_link_into_the_checkpoint_is_within_it(file):
    (file.parent / "lake/checkpoints").mkdir(parents=True)
    (file.parent / "link").symlink_to("lake/checkpoints")
    changed(file, "lake/checkpoints/orders", "link/orders")
    changed(file, 'path = "lake/orders"', 'path = "lake/checkpoints/orders/kept"')

    assert "archive.path: lies within the checkpoint" in mistakes_of(file)[0]


def test_avro_and_protobuf_take_a_message_and_a_registry(file):
    decode = 'format = "protobuf"\nmessage = "shop.Order"\nregistry = "http://one:8081"'
    changed(file, 'format = "json"', decode)

    found = read_pipeline(file, {}).decode

    assert (found.format, found.message, found.registry) == (
        "protobuf",
        "shop.Order",
        "http://one:8081",
    )


def test_settings_go_to_the_clients_that_know_them(file):
    text = file.read_text()
    settings = '"compression.type" = "zstd"\n"fetch.max.bytes" = 7_000_000\n"client.id" = "p"\n'
    file.write_text(f"{text}\n[settings]\n{settings}")

    pipeline = read_pipeline(file, {})

    assert sorted(pipeline.writing()) == ["bootstrap.servers", "client.id", "compression.type"]
    assert pipeline.reading()["fetch.max.bytes"] == "7000000"
    assert "compression.type" not in pipeline.reading()


MISTAKES = [
    ('name = "orders"\n', "", ":0 name: is missing"),
    ('name = "orders"', 'name = "a/b"', ":1 name: 'a/b' may have letters"),
    ('name = "orders"', "name = 3", ":1 name: is a number"),
    ('name = "orders"', 'nam = "orders"', ":1 nam: there is no such key or table; did you mean na"),
    ('checkpoint = "lake', 'checkpoint = "s3://lake', ":2 checkpoint: 's3://lake"),
    ("[source]", "[sourc]", ":0 source: is missing"),
    ('topics = ["orders"]\nrate', "rate", ":4 source.topics: is missing"),
    ('topics = ["orders"]\nrate', "topics = []\nrate", ":5 source.topics: is an empty list"),
    ('topics = ["orders"]\nrate', 'topics = "orders"\nrate', ":5 source.topics: is a text"),
    ('["orders"]\nrate', '["a b"]\nrate', ":5 source.topics: 'a b' cannot be a topic's name"),
    ('["orders"]\nrate', '["a", "a"]\nrate', ":5 source.topics: has 'a' twice"),
    ("rate = 50_000", "rate = 0", ":6 source.rate: is a number"),
    ("rate = 50_000", "rates = 1", ":6 source.rates: there is no such key; did you mean rate?"),
    ("rate = 50_000", 'from = "now"', ":6 source.from: must be earliest, latest or a time"),
    ("rate = 50_000", "from = 2026-11-22T08:00:00", ":6 source.from: must be earliest"),
    ("rate = 50_000", 'time = "_time"', ":6 source.time: '_time' begins with an underscore"),
    ('format = "json"', 'format = "jsn"', ":9 decode.format: is 'jsn', and it must be one of"),
    (
        'format = "json"',
        'format = "json"\nregistry = "host:8081"',
        ":10 decode.registry: must be an address such as http://host:8081",
    ),
    ('format = "json"', 'format = "text"', ":10 decode.schema: is of no use to text"),
    ('schema = "order.json"\n', "", ":8 decode: json needs a schema"),
    ('"order.json"', '"orders.json"', ":10 decode.schema: there is no file"),
    ("positive =", '"a b" =', ":13 check.a b: a name may have letters"),
    ("positive =", "duplicate =", ":13 check.duplicate: the pipeline itself rejects records as"),
    ("positive =", "late =", ":13 check.late: the pipeline itself rejects records as"),
    ('"amount > 0"', '""', ":13 check.positive: is empty"),
    (
        'topic = "orders.clean"',
        'topic = "orders"',
        ":16 clean.topic: 'orders' is a topic of source",
    ),
    ('rejected = "orders.rejected"', 'rejected = "orders.clean"', ":17 clean.rejected: 'orders.c"),
    ('rejected = "orders.rejected"\n', "", ":15 clean.rejected: is missing"),
    ('path = "lake/orders"', 'path = "lake/checkpoints"', ":20 archive.path: lies within"),
    ('path = "lake/orders"', 'path = "order.json"', ":20 archive.path: "),
    ("[archive]", "[[archive]]", ":19 archive: is a list, and it must be a table"),
    ("[archive]", "[archive", ":19 not TOML: "),
    ("[archive]", "[settings]\nlinger = 1\n[archive]", ":19 settings: "),
    ("[archive]", '[settings]\n"bootstrap.servers" = "a:1"\n[archive]', ":19 settings: bootstrap"),
    ("[archive]", '[settings]\n"acks" = "1"\n[archive]', ":19 settings: acks is not taken: the s"),
    (
        "[archive]",
        '[settings]\n"auto.offset.reset" = "earliest"\n[archive]',
        ":19 settings: auto.offset.reset is not taken: the option startingOffsets",
    ),
    (
        "[archive]",
        '[settings]\n"client.id" = ["p"]\n[archive]',
        ":19 settings: has client.id = a l",
    ),
    ("[archive]", '[settings]\n"linger.ms" = 0.5\n[archive]', ":19 settings: "),
    ("rate = 50_000", "from = 1969-12-31T23:59:59Z", ":6 source.from: is before 1970"),
    ("rate = 50_000", 'bootstrap = "http://one:1"', ":6 source.bootstrap: http://one:1 is no addr"),
    ("rate = 50_000", 'bootstrap = "one:99999"', ":6 source.bootstrap: "),
    ("rate = 50_000", 'bootstrap = ","', ":6 source.bootstrap: bootstrap.servers names no address"),
    (
        'format = "json"',
        'format = "json"\nregistry = "http://me:secret/x@one"',
        ":10 decode.registry: must be an address such as http://host:8081",
    ),
    (
        'format = "json"',
        'format = "json"\nregistry = "http://one:99999"',
        ":10 decode.registry: must be an address",
    ),
    (
        'format = "json"',
        'format = "json"\nregistry = "http://[::1"',
        ":10 decode.registry: must be an address",
    ),
    ('"order.json"', '"order\\u0000.json"', ":10 decode.schema: 'order\\x00.json' has a zero byte"),
    ('"order.json"', f'"{"o" * 300}"', f":10 decode.schema: {'o' * 59!r}"[:30]),
    ('"lake/orders"', '"lake\\u0000"', ":20 archive.path: 'lake\\x00' has a zero byte"),
    ('"lake/orders"', '"order.json/lake"', ":20 archive.path: "),
    ('"lake/orders"', '"file:/lake"', ":20 archive.path: 'file:/lake' is no directory of a file s"),
    ('"lake/orders"', '"x/../lake/checkpoints/orders/a"', ":20 archive.path: lies within the"),
    ('name = "orders"', f'name = "{"a" * 201}"', f":1 name: '{'a' * 59} has more than 200 letters"),
    ('path = "lake/orders"', 'path = "o"\nevery = "٣m"', ":21 archive.every: is '٣m', and it must"),
    (
        'path = "lake/orders"',
        f'path = "o"\nevery = "{"9" * 5_000}m"',
        f":21 archive.every: is '{'9' * 59}, and it must be a duration",
    ),
    ("[archive]", f"x = {'[' * 5_000}{']' * 5_000}\n[archive]", ":0 the text is nested too deeply"),
    ('path = "lake/orders"', 'path = "o"\nevery = "36501d"', ":21 archive.every: is '36501d'"),
]


def test_a_time_is_kept_to_the_millisecond(file):
    # A float would make its milliseconds one too small.
    changed(file, "rate = 50_000", "from = 2026-11-22T08:00:00.001Z")
    for milliseconds in range(1, 1_000, 83):
        text = f"2026-11-22T08:00:00.{milliseconds:03}Z"
        assert Start().read(text, file.parent) == 1_795_334_400_000 + milliseconds

    assert read_pipeline(file, {}).source.start == 1_795_334_400_001


@pytest.mark.parametrize(("old", "new", "told"), MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_key(file, old, new, told):
    mistakes = mistakes_of(changed(file, old, new))

    place, _, rest = told.partition(" ")
    begin = f"orders.toml{'' if place == ':0' else place}: {rest}"
    assert any(line.startswith(begin) for line in mistakes), mistakes


MORE = """
[deduplicate]
by = ["id"]
within = "24h"

[[aggregate]]
name = "revenue"
window = "5m"
by = ["country"]
values = { revenue = "sum(amount)" }
topic = "orders.revenue"

[[wait]]
name = "unpaid"
key = "id"
from = "kind = 'placed'"
until = "kind = 'paid'"
within = "30m"
topic = "orders.unpaid"
"""

MORE_MISTAKES = [
    ('by = ["id"]', "by = []", ":24 deduplicate.by: is an empty list"),
    ('within = "24h"', 'within = "1y"', ":25 deduplicate.within: is '1y'"),
    ('"revenue"\nwindow', '"clean"\nwindow', ":28 aggregate.name: there is a stage 'clean' al"),
    ('window = "5m"\n', "", ":27 aggregate: needs either window"),
    ('window = "5m"', 'window = "5m"\nsession = "1m"', ":27 aggregate: needs either window"),
    ('window = "5m"', 'window = "5m"\nslide = "6m"', ":30 aggregate.slide: is longer than"),
    ('window = "5m"', 'session = "5m"\nslide = "1m"', ":30 aggregate.slide: needs window"),
    ('"revenue"\nwindow', '"Clean"\nwindow', ":28 aggregate.name: there is a stage 'clean' al"),
    (
        '{ revenue = "sum(amount)" }',
        '{ "a`b" = "count(*)" }',
        ":31 aggregate.values: names a field that cannot be: 'a`b' has a backtick",
    ),
    (
        '{ revenue = "sum(amount)" }',
        '{ "" = "count(*)" }',
        ":31 aggregate.values: names a field that cannot be: is empty",
    ),
    (
        '{ revenue = "sum(amount)" }',
        '{ _window = "count(*)" }',
        ":31 aggregate.values: names a field that cannot be: '_window' begins with an underscore",
    ),
    ('by = ["country"]', 'by = ["a`b"]', ":30 aggregate.by: 'a`b' has a backtick"),
    ('{ revenue = "sum(amount)" }', "{}", ":31 aggregate.values: must name a field"),
    ('{ revenue = "sum(amount)" }', "{ a = 1 }", ":31 aggregate.values: has 'a', which is no text"),
    ('by = ["country"]', 'by = ["Start"]', ":30 aggregate.by: the result has the field 'Start' al"),
    (
        '{ revenue = "sum(amount)" }',
        '{ sum = "sum(amount)", Country = "max(country)" }',
        ":31 aggregate.values.Country: the result has the field 'Country' already",
    ),
    ('"orders.revenue"', '"orders.clean"', ":32 aggregate.topic: 'orders.clean' is written by"),
    ('"unpaid"', '"revenue"', ":35 wait.name: there is a stage 'revenue' already"),
    ('"orders.unpaid"', '"orders"', ":40 wait.topic: 'orders' is a topic of source"),
    ("until = \"kind = 'paid'\"\n", "", ":34 wait.until: is missing"),
    ("[[wait]]", "[wait]", ":34 wait: must be written as [[wait]], once for each"),
    ('within = "30m"', 'with = "30m"', ":39 wait.with: there is no such key; did you mean within?"),
]


@pytest.fixture
def more(file):
    file.write_text(ORDERS + MORE)
    return file


@pytest.mark.parametrize(("old", "new", "told"), MORE_MISTAKES)
def test_a_mistake_of_one_of_several_is_told_with_its_line(more, old, new, told):
    mistakes = mistakes_of(changed(more, old, new))

    place, _, rest = told.partition(" ")
    assert any(line.startswith(f"orders.toml{place}: {rest}") for line in mistakes), mistakes


def test_each_aggregate_and_each_wait_is_a_stage_between_clean_and_archive(more):
    pipeline = read_pipeline(more, {})

    stages = stages_of(pipeline)

    assert [(stage.name, stage.writes) for stage in stages[1:-1]] == [
        ("revenue", ("orders.revenue",)),
        ("unpaid", ("orders.unpaid",)),
    ]
    assert [stage.reads for stage in stages[1:-1]] == [("orders.clean",)] * 2
    missing = plan_missing(stages, pipeline.source.topics, {"orders": 3})
    several = plan_missing(stages, ("orders", "returns"), {"orders": 3, "returns": 5})
    assert [topic.partition_count for topic in several] == [5] * len(several)
    compacted = {topic.name: topic.configs for topic in missing}
    assert compacted["orders.revenue"] == {"cleanup.policy": "compact"}
    assert compacted["orders.unpaid"] == {}
    lines = list(plan_lines(pipeline, stages, None))
    assert "   window 5m by country, late 10m" in lines
    assert "   until kind = 'paid', within 30m, late 10m" in lines


def test_derived_columns_are_kept_in_their_order(file):
    changed(file, "[check]", '[derive]\nnet = "amount * 0.8"\nround = "floor(net)"\n\n[check]')

    pipeline = read_pipeline(file, {})

    assert list(pipeline.derive.items()) == [("net", "amount * 0.8"), ("round", "floor(net)")]
    lines = list(plan_lines(pipeline, stages_of(pipeline), None))
    assert lines[lines.index("   derive net: amount * 0.8") + 1] == "   derive round: floor(net)"


def test_settings_of_spark_are_texts(file):
    lines = '"spark.driver.memory" = "4g"\n"spark.sql.shuffle.partitions" = 2\n"spark.x" = true'
    changed(file, "[check]", f"[spark]\n{lines}\n\n[check]")

    assert read_pipeline(file, {}).spark == {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.x": "true",
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('"driver.memory" = "4g"', "spark.driver.memory: is no setting of Spark's: they begin"),
        ("spark.x = 1", "spark.spark: is a table, and it must be one text or number; write the"),
        ('"spark.x" = [1]', "spark.spark.x: is a list, and it must be one text or number"),
    ],
)
def test_what_is_no_setting_of_spark_is_refused(file, line, told):
    (mistake,) = mistakes_of(changed(file, "[check]", f"[spark]\n{line}\n\n[check]"))

    assert mistake.startswith(f"orders.toml:13: {told}")


def test_columns_that_stages_name_are_told_once(more):
    changed(more, 'by = ["country"]', 'by = ["customer.country", "event_id"]')

    columns = read_pipeline(more, {}).columns()

    assert "customer.country" in columns
    assert len(set(columns)) == len(columns)


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines(file):
    changed(file, "rate = 50_000", "rate = 0")
    changed(file, 'format = "json"', 'format = "jsn"')

    assert [line.split(": ")[:2] for line in mistakes_of(file)] == [
        ["orders.toml:6", "source.rate"],
        ["orders.toml:9", "decode.format"],
    ]


def test_records_that_are_checked_need_topics_to_go_to(file):
    text = file.read_text()
    file.write_text(text[: text.index("[clean]")] + text[text.index("[archive]") :])

    assert [line.split(": ")[1] for line in mistakes_of(file)] == ["decode", "check"]


def test_derived_columns_need_the_stage_clean(file):
    text = file.read_text().replace("[check]\npositive", "[derive]\nis_positive")
    file.write_text(text[: text.index("[clean]")] + text[text.index("[archive]") :])

    assert [line.split(": ")[1] for line in mistakes_of(file)] == ["decode", "derive"]


def test_a_file_without_a_stage_is_refused(file):
    text = file.read_text()
    file.write_text(text[: text.index("[decode]")])

    assert mistakes_of(file) == [
        "orders.toml: nothing is to be done: add [clean], which checks records, or [archive]"
    ]


def test_a_text_that_is_not_utf8_is_refused_with_its_line(file):
    file.write_bytes(b'name = "a"\n# \xff\n')

    assert mistakes_of(file) == ["orders.toml:2: the text is not UTF-8"]


def test_stages_stand_in_the_order_of_what_feeds_what(file):
    stages = stages_of(read_pipeline(file, {}))

    assert [(stage.name, stage.reads, stage.writes) for stage in stages] == [
        ("clean", ("orders",), ("orders.clean", "orders.rejected")),
        ("archive", ("orders", "orders.clean"), ()),
    ]
    assert [stage.name for stage in choose(stages, "archive")] == ["archive"]
    with pytest.raises(UnknownStage, match=r"no stage 'clear'; did you mean clean\?"):
        choose(stages, "clear")


def test_topics_that_are_missing_get_the_partitions_of_the_source(file):
    pipeline = read_pipeline(file, {})
    stages = stages_of(pipeline)
    there = {"orders": 6, "orders.clean": 2}

    missing = plan_missing(stages, pipeline.source.topics, there)

    assert [(topic.name, topic.partition_count) for topic in missing] == [("orders.rejected", 6)]
    lines = list(plan_lines(pipeline, stages, PipelineTopics("", there, missing)))
    assert "   check positive: amount > 0" in lines
    assert lines[-1] == "makes topic orders.rejected with 6 partitions"
