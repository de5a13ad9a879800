"""Write `docs/reference/settings.md` from the tables of settings.

python tools/generate_settings.py            write the page if it differs
python tools/generate_settings.py --check    write nothing; exit 1 if it differs

The tables are those that the program reads: `base/settings_table` and `base/settings_ignored` of
the broker, `cluster/topic_settings_table` of topics, `client/settings` of our own clients.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tarry.base.setting import DEFAULT_ONLY, GONE, HONOURED, Setting, read_table
from tarry.base.settings_ignored import REASONS
from tarry.base.settings_table import (
    DEFAULT_ONLY_TABLE,
    DYNAMIC_KEYS,
    GONE_TABLE,
    HONOURED_TABLE,
)
from tarry.client.settings import COMMON, CONSUMER, INT32_MAX, KEYS, PRODUCER, Key
from tarry.cluster import topic_settings_table as topics

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "settings.md"

NOTICE: Final = "<!-- Written by tools/generate_settings.py from the tables; change those. -->"

# A group of the broker's table begins with this key.
BROKER_GROUPS: Final = {
    "flush.policy": "Durability and log lines",
    "node.id": "Identity",
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

# The others are Kafka's.
OWN_BROKER_KEYS: Final = ("flush.policy", "logging.format", "logging.level")
OWN_CLIENT_KEYS: Final = ("close.timeout.ms", "heartbeat.mode", "heartbeat.ramp")

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
                    "yes" if row.key in DYNAMIC_KEYS else "no",
                    "Tarry" if row.key in OWN_BROKER_KEYS else "Kafka",
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
        "A topic's setting wins over the broker's key behind it. All of them change while the "
        "broker runs.",
        "",
    ]
    lines += table(
        ["key", "type", "default", "values", "broker's key", "meaning"],
        [
            [*facts(row), ", ".join(map(code, topics.SYNONYMS.get(row.key, ()))), row.sentence]
            for row in rows
        ],
    )
    rest = [
        row
        for row in read_table(topics.DEFAULT_ONLY_TABLE, DEFAULT_ONLY)
        if row.key not in topics.HIDDEN_KEYS
    ]
    return lines + default_only(rest, " of a topic")


def client_settings() -> list[str]:
    lines = [
        "",
        "## Clients",
        "",
        "Of `tarry.client`. A duration is a number of milliseconds or a text such as `30s`.",
    ]
    for owner, title in (
        (COMMON, "Every client"),
        (PRODUCER, "Producer"),
        (CONSUMER, "Consumer"),
    ):
        lines += ["", f"### {title}", ""]
        lines += table(
            ["key", "default", "values", "whose", "meaning"],
            [
                [
                    code(key.name),
                    code(client_default(key)),
                    client_values(key),
                    "Tarry" if key.name in OWN_CLIENT_KEYS else "Kafka",
                    key.reason,
                ]
                for key in KEYS.values()
                if key.owner == owner
            ],
        )
    return lines


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
    """Key, type, default and values."""
    if row.default_text is None:
        default = "-"
    elif row.default_text == "":
        default = "empty"
    else:
        default = code(row.default_text)
    return [code(row.key), row.type, default, values_text(row.check)]


def values_text(check: str) -> str:
    """The check of a row in words."""
    parts = []
    for alternative in check.split("|") if check else ():
        low, dots, high = alternative.partition("..")
        if not dots:
            parts.append(code(alternative))
        else:
            parts.append(f"{low} to {high}" if high else f"{low} or more")
    return ", ".join(parts)


def client_default(key: Key) -> str:
    if isinstance(key.default, bool):
        return "true" if key.default else "false"
    return str(key.default)


def client_values(key: Key) -> str:
    if key.choices:
        return ", ".join(map(code, key.choices))
    if isinstance(key.default, bool):
        return "`true`, `false`"
    if isinstance(key.default, str):
        return ""
    return (
        f"{key.minimum} or more" if key.maximum == INT32_MAX else f"{key.minimum} to {key.maximum}"
    )


def code(text: str) -> str:
    return f"`{text}`" if text else "empty"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    written = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows
    ]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *written]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    is_check = parser.parse_args().check
    text = page_text()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if is_check:
        print(f"{PAGE.relative_to(ROOT)} is not what tools/generate_settings.py writes")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
