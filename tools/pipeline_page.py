"""Page about the pipeline file, from the table of its keys; `generate_settings` writes it."""

from __future__ import annotations

from typing import Final

from tarry.spark.pipeline.file.keys import REQUIRED, FileKey, FileSection, sections

PAGE_INTRODUCTION: Final = """\
# The pipeline file

{notice}

`tarry spark run FILE` runs what the file describes; [how to](../how-to/run-a-pipeline.md) has an \
example from end to end. The file is TOML 1.0. Relative paths count from the file. A duration is a \
text such as `500ms`, `30s`, `5m`, `24h` or `7d`.

Every mistake is told with its line and its key before anything starts, also a key that is not \
known and an expression that Spark cannot resolve over the columns of the schema.

A section may also be written as one value: `clean = {{ topic = "orders.clean", rejected = \
"orders.rejected" }}`.
"""


def pipeline_page(notice: str) -> str:
    """Write the page."""
    lines = [PAGE_INTRODUCTION.format(notice=notice).rstrip()]
    for section in sections():
        lines += ["", f"## {title_of(section)}", "", section.about]
        if section.keys:
            lines += ["", "| key | value | default | |", "|---|---|---|---|"]
            lines += [row_of(key) for key in section.keys]
    return "\n".join(lines) + "\n"


def title_of(section: FileSection) -> str:
    """Write the title of a section as it stands in the file."""
    return f"`[{section.name}]`" if section.name else "Top"


def row_of(key: FileKey) -> str:
    """Write the row of a key."""
    if key.default is REQUIRED:
        default = "must be there"
    else:
        default = f"`{key.default}`" if key.default else "-"
    return f"| `{key.name}` | {key.kind.told} | {default} | {key.about} |"
