"""Examples of the pages about Spark: each one run, beside what its page says that it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs_of(page: str) -> list[str]:
    """Return the Python of a page, block by block."""
    blocks = FENCED.findall((HOW_TO / page).read_text(encoding="utf-8"))
    return [text for kind, text in blocks if kind == "python"]


def run_examples(page: str, bootstrap: str) -> list[tuple[str, str]]:
    """What each example of a page prints, and what stands below it, from top to bottom."""
    blocks = FENCED.findall((HOW_TO / page).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran: list[tuple[str, str]] = []
    for place, (kind, text) in enumerate(blocks):
        if kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(text.replace("127.0.0.1:9092", bootstrap), namespace)
            follows, expected = blocks[place + 1]
            ran.append((printed.getvalue(), expected if follows == "text" else ""))
    return ran
