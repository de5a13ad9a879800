"""Lines on the standard error output: text for people, JSON for collectors.

One line an occurrence, whatever a message holds; a stack trace, which only a fault of our own
brings, follows its line as text and is a field in JSON.
"""

from __future__ import annotations

import logging
import sys
import time

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"


class TextFormatter(logging.Formatter):
    """`2026-11-21T12:00:00.123Z WARNING tarry.broker: what happened`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time_of(record)} {record.levelname} {record.name}: {_one_line(record)}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


class JsonFormatter(logging.Formatter):
    """`{"time": ..., "level": ..., "logger": ..., "message": ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        import json  # text is the default, and start-up time counts

        fields = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def install_lines(form: str, level: str) -> None:
    """Send the lines of the whole process to the standard error output."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # A closed standard error output is no reason to stop.
    logging.raiseExceptions = False


def _time_of(record: logging.LogRecord) -> str:
    return f"{time.strftime(_TIME_FORMAT, time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _one_line(record: logging.LogRecord) -> str:
    text = record.getMessage()
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
