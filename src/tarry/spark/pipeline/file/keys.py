"""Keys of a pipeline file: one table, which the reader and the reference are made from."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tarry.spark.pipeline.file.values import (
    Addresses,
    Column,
    Directory,
    Duration,
    Expression,
    Expressions,
    FilePath,
    KafkaSettings,
    Kind,
    Name,
    SparkValue,
    Start,
    Texts,
    TopicName,
    WebAddress,
    WholeNumber,
    Word,
)

# In place of a default, for a key that must be there.
REQUIRED: Final = object()


class FileKey(NamedTuple):
    """Key of a section."""

    name: str
    kind: Kind
    default: Any
    about: str


class FileSection(NamedTuple):
    """FileSection of the file: a table, or several of one name."""

    name: str
    about: str
    keys: tuple[FileKey, ...] = ()
    # Several, each in [[double brackets]].
    is_many: bool = False
    # Keys are the user's own names, and values are of this kind.
    names: Kind | None = None
    is_required: bool = False


LATE: Final = (
    "How far an event may lag behind the newest one; later ones are left out, which `late` of the "
    "progress tells."
)

TOP: Final = FileSection(
    "",
    "Top of the file, before the first table.",
    (
        FileKey("name", Name(), REQUIRED, "Name of the pipeline, in progress and metrics."),
        FileKey(
            "checkpoint",
            Directory(),
            REQUIRED,
            "Directory of what the stages remember, one below it for each; driver and workers "
            "share it. It belongs to this pipeline and this cluster.",
        ),
        FileKey(
            "every",
            Duration(),
            "1s",
            "How often a stage takes a micro-batch while it runs continuously.",
        ),
        FileKey(
            "settings",
            KafkaSettings(),
            {},
            'Settings of the clients under Kafka\'s keys, such as "compression.type" = "zstd": '
            "those of consumers are for reading, those of producers for writing.",
        ),
    ),
)

SECTIONS: Final = (
    FileSection(
        "source",
        "Topics that the pipeline reads, and how.",
        (
            FileKey("topics", Texts(TopicName()), REQUIRED, "Topics that are read."),
            FileKey(
                "bootstrap",
                Addresses(),
                "",
                "Addresses of the cluster. Default: `TARRY_BOOTSTRAP_SERVERS` of the environment, "
                "else 127.0.0.1:9092.",
            ),
            FileKey(
                "from",
                Start(),
                "earliest",
                "Where the stage `clean` begins when it is new. One that has run goes on where it "
                "was, and the other stages take all that their topics hold.",
            ),
            FileKey(
                "rate",
                WholeNumber(),
                None,
                "Records a second that the stage `clean` reads at most. With `--once`, which is "
                "not slowed down, it limits the size of a micro-batch only.",
            ),
            FileKey(
                "time", Column(), None, "Column of the event time. Default: the record's time."
            ),
            FileKey(
                "group",
                Name(),
                None,
                "Group to which offsets are committed, so that `tarry groups describe` shows the "
                "lag. Nobody joins it.",
            ),
        ),
        is_required=True,
    ),
    FileSection(
        "decode",
        "How a record's value becomes columns.",
        (
            FileKey(
                "format",
                Word("json", "avro", "protobuf", "text"),
                REQUIRED,
                "Format of values; text has one column, `text`.",
            ),
            FileKey(
                "schema",
                FilePath(),
                None,
                "File of a JSON Schema, of an Avro schema or of a Protobuf descriptor set; its "
                "fields become columns.",
            ),
            FileKey("message", Kind(), None, "Full name of the Protobuf message."),
            FileKey(
                "registry", WebAddress(), None, "Address of a schema registry, http://host:port."
            ),
        ),
    ),
    FileSection(
        "spark",
        'Settings of the Spark that the command starts, such as "spark.driver.memory" = "4g"; '
        "`--conf` of the command goes before them.",
        names=SparkValue(),
    ),
    FileSection(
        "derive",
        "Columns that are computed from others of their record: each is a name and an SQL "
        "expression over the columns, those of this table before it too. Rules, deduplication, "
        "aggregates and waits see them; the record itself stays as it came. What cannot be "
        "computed is null. A field inside another one, such as `customer.country`, needs none: "
        "its path may stand wherever a column may.",
        names=Expression(),
    ),
    FileSection(
        "check",
        "Rules: each is a name and an SQL expression over the columns. A record for which it is "
        "false or null is rejected under the rule's name. What cannot be computed, such as a "
        "division by zero, is null. Whole numbers that leave 64 bits go round: write "
        "`try_multiply(price, count) < 1000`, or `try_add`, which are null then, or bound "
        "the numbers in the schema (`maximum`).",
        names=Expression(),
    ),
    FileSection(
        "deduplicate",
        "Events that come more than once: all but the first one are rejected as `duplicate`.",
        (
            FileKey("by", Texts(Column()), REQUIRED, "Columns that are the same in one event."),
            FileKey("within", Duration(), REQUIRED, "Event time for which an event is remembered."),
        ),
    ),
    FileSection(
        "clean",
        "Stage `clean`: decodes, checks and deduplicates. Each record is in exactly one of the two "
        "topics, once.",
        (
            FileKey("topic", TopicName(), REQUIRED, "Topic of the records that are well."),
            FileKey(
                "rejected",
                TopicName(),
                REQUIRED,
                "Topic of the others: as they came, with the headers `x-error-rule`, `x-error` and "
                "`x-origin`.",
            ),
        ),
    ),
    FileSection(
        "aggregate",
        "Stage that reads the clean topic and writes the results of windows of event time, once a "
        "window is over and `late` has passed. Each has a name and a topic of its own.",
        (
            FileKey("name", Name(), REQUIRED, "Name of the stage."),
            FileKey("window", Duration(), None, "Length of a window; or give `session`."),
            FileKey("slide", Duration(), None, "Time between the begins of two windows."),
            FileKey("session", Duration(), None, "Gap that ends a session."),
            FileKey("late", Duration(), "10m", LATE),
            FileKey("by", Texts(Column()), (), "Columns of a group."),
            FileKey(
                "values",
                Expressions(),
                REQUIRED,
                'Fields of a result, such as { revenue = "sum(amount)" }. What cannot be computed '
                "ends the stage: where a sum may leave 64 bits, write `try_sum`, which is null "
                "then.",
            ),
            FileKey(
                "topic",
                TopicName(),
                REQUIRED,
                "Topic of the results, in JSON: `start`, `end`, the group and the values. If it is "
                "missing, a compacted one is made.",
            ),
        ),
        is_many=True,
    ),
    FileSection(
        "wait",
        "Stage that reads the clean topic and writes a record for each wait that ended: completed "
        "by the event that was waited for, or expired.",
        (
            FileKey("name", Name(), REQUIRED, "Name of the stage."),
            FileKey("key", Column(), REQUIRED, "Column that both events share."),
            FileKey("from", Expression(), REQUIRED, "Expression of an event that begins a wait."),
            FileKey("until", Expression(), REQUIRED, "Expression of the event that completes it."),
            FileKey("within", Duration(), REQUIRED, "Event time after which a wait expires."),
            FileKey("late", Duration(), "10m", LATE),
            FileKey("topic", TopicName(), REQUIRED, "Topic of the waits that ended, in JSON."),
        ),
        is_many=True,
    ),
    FileSection(
        "archive",
        "Stage `archive`: topics as files, as `tarry spark archive` makes them.",
        (
            FileKey("path", Directory(), REQUIRED, "Directory of the archive."),
            FileKey(
                "topics",
                Texts(TopicName()),
                None,
                "Topics that are kept; else those of source.",
            ),
            FileKey("by", Word("hour", "day", "none"), "hour", "Layout of the files by time."),
            FileKey("table", Word("parquet", "delta"), "parquet", "Kind of table."),
            FileKey("every", Duration(), "1m", "How often a round is taken while it runs on."),
        ),
    ),
)


def sections() -> tuple[FileSection, ...]:
    """Return all sections, from the top of the file on."""
    return (TOP, *SECTIONS)
