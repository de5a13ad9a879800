"""The examples of the documentation: each one runs, and prints what its page says.

A page's blocks marked `python` run from top to bottom in one namespace, as a reader would type
them.  What a block prints stands in the block marked `text` right below it; a block without one
prints nothing.  A command that draws a picture stands in a block marked `sh`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tarry.cli.timer import picture

ROOT = Path(__file__).resolve().parents[2]
# Their examples need a broker: tests/interop/test_examples_with_a_broker.py runs them.
BROKER_PAGES = (
    "docs/how-to/archive-with-spark.md",
    "docs/how-to/administer.md",
    "docs/how-to/arrow-and-data-frames.md",
    "docs/how-to/asyncio.md",
    "docs/how-to/compacted-topics.md",
    "docs/how-to/consume-in-a-group.md",
    "docs/how-to/consumer-groups.md",
    "docs/how-to/delay-a-record.md",
    "docs/how-to/recurring-records.md",
    "docs/how-to/try-again-later.md",
    "docs/how-to/what-waits.md",
    "docs/how-to/fork-and-workers.md",
    "docs/how-to/look-at-waits-and-rebalances.md",
    "docs/how-to/moving-from-other-clients.md",
    "docs/how-to/objects-and-committed-records.md",
    "docs/how-to/produce-safely.md",
    "docs/how-to/replay-after-a-bug.md",
    # Its examples need Spark too: tests/spark/test_examples.py runs them.
    "docs/how-to/late-data-and-backfill.md",
    # tests/unit/spark/pipeline/test_monitor_page.py runs it beside the file that it reads.
    "docs/how-to/monitor-a-pipeline.md",
    "docs/how-to/move-from-sparks-kafka-connector.md",
    "docs/how-to/pipeline-steps.md",
    "docs/how-to/read-with-spark.md",
    "docs/how-to/run-a-pipeline.md",
    "docs/how-to/spark-on-a-cluster.md",
    # Nothing in it can be run here, and it says so.
    "docs/how-to/spark-on-kubernetes.md",
    "docs/how-to/write-with-spark.md",
    "docs/tutorial-spark.md",
    "docs/tutorial.md",
)
PAGES = [
    page
    for page in sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    if page not in BROKER_PAGES
]
# Its other examples need a broker, and tests/interop and tests/meta look after them.
README = "README.md"
LIBRARIES = ("tarry.timer", "tarry.purgatory")

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^from (\S+) import (\w+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass
class Example:
    line: int
    source: str
    printed: str


def examples_of(page: str) -> list[Example]:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(FENCED.finditer(text))
    found = []
    for place, block in enumerate(blocks):
        kind, source = block.groups()
        if kind != "python" or (page == README and not any(one in source for one in LIBRARIES)):
            continue
        line = text[: block.start()].count("\n") + 2
        after = blocks[place + 1] if place + 1 < len(blocks) else None
        printed = after[2] if after is not None and after[1] == "text" else ""
        found.append(Example(line, source, printed))
    return found


def pictures_of(page: str) -> list[list[str]]:
    """The arguments of every `tarry timer picture` of a page that names a file."""
    found = []
    for block in FENCED.finditer((ROOT / page).read_text(encoding="utf-8")):
        commands = block[2].replace("\\\n", " ").splitlines() if block[1] == "sh" else []
        for command in commands:
            words = shlex.split(command, comments=True)
            if words[:3] == ["tarry", "timer", "picture"] and "--output" in words:
                found.append(words[3:])
    return found


@pytest.mark.parametrize("page", [README, *PAGES])
def test_every_example_prints_what_its_page_says(page: str) -> None:
    names: dict[str, Any] = {"__name__": "__example__"}
    threads = threading.active_count()

    for example in examples_of(page):
        # Counted from the top of the page, so that an error names the right line.
        source = "\n" * (example.line - 1) + example.source
        code = compile(source, page, "exec", dont_inherit=True)  # without this file's __future__
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == example.printed, f"{page}:{example.line}"

    assert threading.active_count() == threads, f"{page} leaves a thread behind"


@pytest.mark.parametrize("page", PAGES)
def test_no_example_hides_from_the_tests(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    # Signatures of the reference are marked `py`, for they are no examples.
    marks = r"python|pycon" if page.startswith("docs/reference/") else r"python|pycon|py"
    marked = re.findall(rf"^\s*(?:```|~~~)\s*(?:{marks})\b", text, re.MULTILINE)
    assert len(marked) == len(examples_of(page))


@pytest.mark.parametrize(
    "page",
    [
        "docs/reference/client-admin.md",
        "docs/reference/client-aio.md",
        "docs/reference/client-arrow.md",
        "docs/reference/client-errors.md",
        "docs/reference/client.md",
        "docs/reference/purgatory.md",
        "docs/reference/timer.md",
    ],
)
def test_every_name_of_the_reference_is_imported_as_it_says(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    imports = IMPORT.findall(text)

    # A page of commands names nothing of Python.
    assert imports or "```py" not in text
    for module, name in imports:
        assert hasattr(importlib.import_module(module), name), f"from {module} import {name}"


def test_the_pages_that_teach_have_examples() -> None:
    teaching = [page for page in PAGES if page.startswith("docs/how-to/")]

    assert len(teaching) >= 4
    assert [page for page in teaching if not examples_of(page)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if pictures_of(page)])
def test_every_picture_is_what_its_command_draws_now(page: str, tmp_path: Path) -> None:
    for arguments in pictures_of(page):
        file = arguments[arguments.index("--output") + 1]
        drawn = tmp_path / Path(file).name

        words = [str(drawn) if word == file else word for word in arguments]
        result = CliRunner().invoke(picture, words)

        assert result.exit_code == 0, result.output
        again = f"draw it again: tarry timer picture {shlex.join(arguments)}"
        assert drawn.read_bytes() == (ROOT / file).read_bytes(), again


@pytest.mark.parametrize("page", [README, *PAGES, *BROKER_PAGES])
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    prose = FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))

    lost = []
    for link in LINK.findall(prose):
        target, _, heading = link.partition("#")
        if "://" in target:
            continue
        path = (ROOT / page).parent / target if target else ROOT / page
        if not path.exists() or (heading and heading not in headings_of(path)):
            lost.append(link)
    assert lost == []


def headings_of(path: Path) -> list[str]:
    """The names that a page's headings have in links to them."""
    prose = FENCED.sub("", path.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
