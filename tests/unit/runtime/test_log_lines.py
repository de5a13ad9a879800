"""Lines of the log: one an occurrence, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys

from tarry.runtime.log_lines import JsonFormatter, TextFormatter


def record(message: str, *, trace: bool = False) -> logging.LogRecord:
    info = None
    if trace:
        try:
            raise ValueError("our own mistake")
        except ValueError:
            info = sys.exc_info()
    made = logging.LogRecord("tarry.broker", logging.WARNING, "", 0, message, ("x",), info)
    made.created = 1_795_262_400.25
    made.msecs = 250.0
    return made


def test_a_line_of_text_has_time_level_and_place() -> None:
    line = TextFormatter().format(record("what %s did"))

    assert line == "2026-11-21T12:00:00.250Z WARNING tarry.broker: what x did"


def test_a_message_cannot_make_a_second_line() -> None:
    assert TextFormatter().format(record("a\nb\x1b %s")).endswith("tarry.broker: a?b? x")


def test_a_line_of_json_has_the_same_as_fields() -> None:
    assert json.loads(JsonFormatter().format(record("a\n%s é"))) == {
        "time": "2026-11-21T12:00:00.250Z",
        "level": "warning",
        "logger": "tarry.broker",
        "message": "a\nx é",
    }


def test_a_fault_of_our_own_brings_its_trace() -> None:
    assert "ValueError: our own mistake" in TextFormatter().format(record("%s", trace=True))
    fields = json.loads(JsonFormatter().format(record("%s", trace=True)))
    assert "ValueError: our own mistake" in fields["trace"]
