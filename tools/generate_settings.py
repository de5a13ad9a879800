"""Write what follows from the tables of settings: the page about them and the names with types.

python tools/generate_settings.py            write the files that differ
python tools/generate_settings.py --check    write nothing; exit 1 if one differs

The tables are those that the program reads: `base/settings_table` and `base/settings_ignored` of
the broker, `base/topic_settings_table` of topics, `client/settings_table` of our own clients.
Written are `docs/reference/settings.md`, `base/setting_attributes.py` (the broker's settings as
attributes) and `client/setting_arguments.py` (a client's settings as keyword arguments); and
`docs/reference/pipeline-file.md` from the keys of `spark/pipeline/file/keys`, and
`docs/reference/spark-format.md` from the options of `spark/option_table`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tarry.base import topic_settings_table as topics
from tarry.base.setting import DEFAULT_ONLY, GONE, HONOURED, Setting, read_table
from tarry.base.settings_ignored import REASONS
from tarry.base.settings_table import DEFAULT_ONLY_TABLE, GONE_TABLE, HONOURED_TABLE
from tarry.client.settings import CLIENT_SETTINGS, COMMON, CONSUMER, PRODUCER

ROOT: Final = Path(__file__).resolve().parent.parent
if str(ROOT / "tools") not in sys.path:
    # Where a test loads this file, the folder of the tools is not searched.
    sys.path.insert(0, str(ROOT / "tools"))

from pipeline_page import pipeline_page  # noqa: E402
from spark_options_page import spark_options_page  # noqa: E402

PAGE: Final = ROOT / "docs" / "reference" / "settings.md"
ATTRIBUTES: Final = ROOT / "src" / "tarry" / "base" / "setting_attributes.py"
PIPELINE_PAGE: Final = ROOT / "docs" / "reference" / "pipeline-file.md"
SPARK_PAGE: Final = ROOT / "docs" / "reference" / "spark-format.md"
ARGUMENTS: Final = ROOT / "src" / "tarry" / "client" / "setting_arguments.py"

NOTICE: Final = "<!-- Written by tools/generate_settings.py from the tables; change those. -->"

# A group of the broker's table begins with this key.
BROKER_GROUPS: Final = {
    "flush.policy": "Durability and log lines",
    "node.id": "Identity",
    "metadata.store": "Several brokers",
    "listeners": "Addresses",
    "log.dirs": "Data",
    "socket.request.max.bytes": "Connections",
    "auto.create.topics.enable": "Topics",
    "message.max.bytes": "Logs",
    "log.retention.bytes": "Retention",
    "log.cleanup.policy": "Compaction",
    "group.initial.rebalance.delay.ms": "Consumer groups",
    "fetch.max.bytes": "Limits and producers",
}

# A group of the client's table, and the class of its keyword arguments.
CLIENT_GROUPS: Final = (
    (COMMON, "Every client", "ClientArguments"),
    (PRODUCER, "Producer", "ProducerArguments"),
    (CONSUMER, "Consumer", "ConsumerArguments"),
)

INTRODUCTION: Final = """\
# Settings

{notice}

| settings | where they are written |
|---|---|
| [of the broker](#the-broker) | a file (`tarry serve --config server.properties`), the \
environment (`TARRY_LOG_DIRS` for `log.dirs`), `tarry serve --set key=value`; later ones win |
| [of a topic](#topics) | `tarry topics create -c key=value`, `tarry configs set --topic NAME \
key=value`, any Kafka client |
| [of our clients](#clients) | `Producer({{"linger.ms": 5}})` or `Producer(linger_ms=5)` |

Keys, types, defaults and ranges are Kafka's, unless the column *whose* says *Tarry*. *While it \
runs* says if `tarry configs set --broker ID key=value` changes the key without a restart. A dash \
stands for no default. Durations are in the unit that the key ends with.

See what counts now, and why: `tarry configs get --broker 1 --explain`.
"""


def page_text() -> str:
    lines = [INTRODUCTION.format(notice=NOTICE)]
    lines += ["## The broker"]
    for title, rows in broker_groups():
        lines += ["", f"### {title}", ""]
        lines += table(
            ["key", "type", "default", "values", "while it runs", "whose", "meaning"],
            [
                [
                    *facts(row),
                    "yes" if row.is_dynamic else "no",
                    whose(row),
                    row.sentence,
                ]
                for row in rows
            ],
        )
    lines += default_only(read_table(DEFAULT_ONLY_TABLE, DEFAULT_ONLY), "")
    lines += ["", "### Removed", "", "The broker refuses them and says what to write instead.", ""]
    lines += table(
        ["key", "what to write"],
        [[code(row.key), row.sentence] for row in read_table(GONE_TABLE, GONE)],
    )
    lines += without_effect()
    lines += topic_settings()
    lines += client_settings()
    return "\n".join(lines) + "\n"


def broker_groups() -> list[tuple[str, list[Setting]]]:
    groups: list[tuple[str, list[Setting]]] = []
    for row in read_table(HONOURED_TABLE, HONOURED):
        if row.key in BROKER_GROUPS:
            groups.append((BROKER_GROUPS[row.key], []))
        groups[-1][1].append(row)
    missing = sorted(set(BROKER_GROUPS.values()) - {title for title, _ in groups})
    if missing:
        sys.exit(f"generate_settings: no key begins the group {missing[0]}; mend BROKER_GROUPS")
    return groups


def topic_settings() -> list[str]:
    rows = read_table(topics.HONOURED_TABLE, HONOURED)
    lines = [
        "",
        "## Topics",
        "",
        "A topic's setting wins over the broker's key behind it. All of them are Kafka's, but for "
        "those of scheduled records, and all change while the broker runs.",
        "",
    ]
    lines += table(
        ["key", "type", "default", "values", "broker's key", "meaning"],
        [
            [*facts(row), ", ".join(code(key) for key, _ in row.behind), row.sentence]
            for row in rows
        ],
    )
    lines += ["", "### Scheduled records", ""]
    lines += table(
        ["key", "type", "default", "values", "meaning"],
        [[*facts(row), row.sentence] for row in read_table(topics.OURS_TABLE, HONOURED)],
    )
    rest = [row for row in read_table(topics.DEFAULT_ONLY_TABLE, DEFAULT_ONLY) if not row.is_hidden]
    return lines + default_only(rest, " of a topic")


def client_settings() -> list[str]:
    lines = [
        "",
        "## Clients",
        "",
        'Of `tarry.client`, as a mapping or by name: `Producer({"linger.ms": 20})` and '
        "`Producer(linger_ms=20)` are the same. A duration is a number of milliseconds or a text "
        "such as `30s`. A client keeps the settings that it was made with.",
    ]
    for owner, title, _ in CLIENT_GROUPS:
        lines += ["", f"### {title}", ""]
        lines += table(
            ["key", "type", "default", "values", "whose", "meaning"],
            [[*facts(row), whose(row), row.sentence] for row in client_rows(owner)],
        )
    return lines


def client_rows(owner: str) -> list[Setting]:
    return [row for row in CLIENT_SETTINGS.values() if row.scope == owner]


def default_only(rows: Iterable[Setting], whose: str) -> list[str]:
    lines = [
        "",
        f"### Keys{whose} that are taken at their default only",
        "",
        "Another value is refused with a sentence: it asks for something that is not there.",
        "",
    ]
    return lines + table(
        ["key", "type", "default", "reason"],
        [[*facts(row)[:3], row.sentence] for row in rows],
    )


def without_effect() -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for key, reason in REASONS.items():
        by_reason.setdefault(reason, []).append(key)
    lines = [
        "",
        "### Kafka's keys without effect",
        "",
        "They are taken at any value, so that a `server.properties` loads. Those that you set are "
        "named in one warning at the start.",
        "",
    ]
    return lines + table(
        ["reason", "keys"],
        [[reason, ", ".join(map(code, keys))] for reason, keys in by_reason.items()],
    )


# --- Cells


def facts(row: Setting) -> list[str]:
    """Write key, type, default and values."""
    if row.default_text is None:
        default = "-"
    elif row.default_text == "":
        default = "empty"
    else:
        default = code(row.default_text)
    return [code(row.key), row.type, default, values_text(row.check)]


def values_text(check: str) -> str:
    """Write the check of a row in words."""
    parts = []
    for alternative in check.split("|") if check else ():
        low, dots, high = alternative.partition("..")
        if not dots:
            parts.append(code(alternative))
        else:
            parts.append(f"{low} to {high}" if high else f"{low} or more")
    return ", ".join(parts)


def whose(row: Setting) -> str:
    return "Tarry" if row.is_ours else "Kafka"


def code(text: str) -> str:
    return f"`{text}`" if text else "empty"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    written = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows
    ]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *written]


# --- Names with types


def attributes_text() -> str:
    rows = [
        *read_table(HONOURED_TABLE, HONOURED),
        *read_table(DEFAULT_ONLY_TABLE, DEFAULT_ONLY),
    ]
    lines = [
        '"""Written by `tools/generate_settings.py`: the broker\'s settings with their types."""',
        "",
        "from __future__ import annotations",
        "",
        "",
        "class SettingAttributes:",
        '    """Attributes of `Settings`, one for each row of the table.',
        "",
        "    A key with others behind it is in its own unit, also where the user gave another one.",
        '    """',
        "",
        *[f"    {row.attribute}: {attribute_type(row)}" for row in rows],
    ]
    return "\n".join(lines) + "\n"


def attribute_type(row: Setting) -> str:
    name = {"boolean": "bool", "double": "float", "list": "tuple[str, ...]", "string": "str"}.get(
        row.type, "int"
    )
    return f"{name} | None" if row.default is None and not row.behind else name


def arguments_text() -> str:
    lines = [
        '"""Written by `tools/generate_settings.py`: settings of clients as keyword arguments.',
        "",
        'Type checkers and editors know each of them.  A number may be text: `"30s"` is a time.',
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TypedDict",
        "",
        "from tarry.client.settings import PartitionFunction",
    ]
    for owner, title, name in CLIENT_GROUPS:
        base = "TypedDict" if owner == COMMON else CLIENT_GROUPS[0][2]
        lines += ["", "", f"class {name}({base}, total=False):"]
        lines += [f'    """Settings of {title.lower()}."""', ""]
        lines += [f"    {row.attribute}: {argument_type(row)}" for row in client_rows(owner)]
    return "\n".join(lines) + "\n"


def argument_type(row: Setting) -> str:
    if row.type == "boolean":
        return "bool"
    if row.key == "partitioner":
        return "str | PartitionFunction"
    # acks is often given as a number.
    if row.key == "bootstrap.servers":
        return "str | list[str] | tuple[str, ...]"
    return "int | str" if row.type in ("int", "long") or row.key == "acks" else "str"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    is_check = parser.parse_args().check
    status = 0
    for path, text in (
        (PAGE, page_text()),
        (PIPELINE_PAGE, pipeline_page(NOTICE)),
        (SPARK_PAGE, spark_options_page(NOTICE)),
        (ATTRIBUTES, attributes_text()),
        (ARGUMENTS, arguments_text()),
    ):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if is_check:
            print(f"{path.relative_to(ROOT)} is not what tools/generate_settings.py writes")
            status = 1
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
