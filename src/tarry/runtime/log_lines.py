"""Lines on the standard error output: text for people, JSON for collectors.

Each occurrence is one line, whatever its message has.  A stack trace, which only a bug in Tarry
causes, follows its line as text and is a field in JSON.  A thread writes the lines (`log_writer`),
so that the loop never waits for the reader of the output.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

from tarry.runtime.log_writer import LogWriter

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"

# Room for the line about dropped lines, in either form.
GAP_BYTES: Final = 300


class TextFormatter(logging.Formatter):
    """Formatter of lines `2026-11-21T12:00:00.123Z WARNING tarry.broker: what happened`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time_of(record)} {record.levelname} {record.name}: {_one_line(record)}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


class JsonFormatter(logging.Formatter):
    """Formatter of lines `{"time": ..., "level": ..., "logger": ..., "message": ...}`."""

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


class QueueHandler(logging.Handler):
    """Handler that formats a line and leaves the writing to a `LogWriter`.

    The first line after a gap is preceded by the number of dropped lines.  A critical line is
    written before the call returns, or after a second of trying.
    """

    def __init__(self, writer: LogWriter, encoding: str = "utf-8") -> None:
        super().__init__()
        self._writer = writer
        self._encoding = encoding

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._encode(record)
            # Ask for room for the line itself and for the line about the gap.
            dropped = self._writer.take_dropped(len(line) + GAP_BYTES)
            if dropped > 0:
                self._writer.offer(self._encode(_gap(dropped)))
            self._writer.offer(line)
            if record.levelno >= logging.CRITICAL:
                self._writer.flush()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Wait until the lines are written, at most a second; `logging` calls it at the end."""
        self._writer.flush()

    def tell(self, text: str) -> None:
        """Write a plain line for the person at the terminal, without time and level."""
        self._writer.offer(self._bytes(text))
        self._writer.flush()

    def _encode(self, record: logging.LogRecord) -> bytes:
        return self._bytes(self.format(record))

    def _bytes(self, text: str) -> bytes:
        return f"{text}\n".encode(self._encoding, "backslashreplace")


def install_lines(form: str, level: str) -> QueueHandler:
    """Send the log of the whole process to the standard error output; drop it if that is closed.

    Descriptor 2 of a process that began without it may be a file of the broker's data.
    """
    if sys.stderr is None:
        handler = QueueHandler(LogWriter(-1))
    else:
        handler = QueueHandler(LogWriter(sys.stderr.fileno()), sys.stderr.encoding)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # A closed standard error output is no reason to stop.
    logging.raiseExceptions = False
    return handler


def _gap(dropped: int) -> logging.LogRecord:
    message = (
        "%d lines of the log were dropped here: the standard error output was not read fast enough"
    )
    return logging.LogRecord(
        "tarry.runtime", logging.WARNING, __file__, 0, message, (dropped,), None
    )


def _time_of(record: logging.LogRecord) -> str:
    return f"{time.strftime(_TIME_FORMAT, time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _one_line(record: logging.LogRecord) -> str:
    text = record.getMessage()
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
