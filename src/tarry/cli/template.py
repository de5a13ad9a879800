"""Templates of `tarry produce --format`: which part of a line is the key, the value and so on.

The letters are those of `tarry consume --format`, so that what the one prints the other reads:
`%t`, `%p`, `%T`, `%k`, `%s`, `%h`; `%o`, `%K` and `%S` are read and left alone.  Text between two
letters separates them: a part ends where the text behind it begins, the last one at the end.
"""

from __future__ import annotations

import re
import time
from typing import Final

from tarry.cli.escapes import BadEscape, read_escape
from tarry.cli.formats import BadFormat
from tarry.cli.input import BadInput, InputRecord
from tarry.cli.places import BadPlace, parse_time_ms
from tarry.cli.records_csv import headers_of
from tarry.cli.units import PARTITION_MAX, whole_number

LETTERS: Final = "%t topic, %p partition, %T timestamp, %k key, %s value, %h headers"
# Letters of parts that the broker sets: they are read, so that a printed line can be sent again,
# and ignored.
LEFT_ALONE: Final = "oKS"
TAKEN: Final = "tpTksh" + LEFT_ALONE


class Template:
    """A compiled template; `delimiter` is what it says to stand behind a record, if anything."""

    def __init__(self, text: str) -> None:
        literals, letters = _parse(text)
        if "s" not in letters and "k" not in letters:
            raise BadFormat(f"the format {text!r} takes no key or value; there are {LETTERS}")
        self._letters = letters
        # A newline at the end of the template is the delimiter behind a printed record.
        self.delimiter = b""
        if literals[-1].endswith(b"\n"):
            self.delimiter = b"\n"
            literals[-1] = literals[-1][:-1]
        self.text = text
        pattern = [re.escape(literals[0])]
        for literal in literals[1:]:
            pattern.append(b"(.*?)" + re.escape(literal))
        self._pattern = re.compile(b"".join(pattern), re.DOTALL)

    def record_of(self, line: bytes, where: str) -> InputRecord:
        """Read the record in a line; BadInput if the line has another form."""
        found = self._pattern.fullmatch(line)
        if found is None:
            raise BadInput(f"{where}: the line does not have the form {self.text!r}")
        parts = dict(zip(self._letters, found.groups(), strict=True))
        return InputRecord(
            parts.get("s"),
            parts.get("k"),
            headers_of(parts.get("h", b""), where) or None,
            _time_ms(parts.get("T", b""), where),
            _topic(parts.get("t"), where),
            _partition(parts.get("p"), where),
        )


def _parse(text: str) -> tuple[list[bytes], str]:
    """Return the texts around the letters, and the letters."""
    literals = [bytearray()]
    letters = ""
    position = 0
    while position < len(text):
        if text[position] == "\\":
            try:
                escaped, position = read_escape(text, position)
            except BadEscape as error:
                raise BadFormat(str(error)) from None
            literals[-1] += escaped
        elif text[position] == "%":
            letter = text[position + 1 : position + 2]
            position += 2
            if letter == "%":
                literals[-1] += b"%"
                continue
            _check_letter(letter, letters, is_next=bool(letters) and not literals[-1])
            letters += letter
            literals.append(bytearray())
        else:
            literals[-1] += text[position].encode(errors="surrogateescape")
            position += 1
    return [bytes(literal) for literal in literals], letters


def _check_letter(letter: str, before: str, *, is_next: bool) -> None:
    if not letter or letter not in TAKEN:
        raise BadFormat(f"invalid letter %{letter} of an input format; there are {LETTERS}")
    if letter in before:
        raise BadFormat(f"%{letter} is in the format twice")
    if is_next:
        raise BadFormat(f"put text between %{before[-1]} and %{letter}, to tell them apart")


def _time_ms(text: bytes, where: str) -> int | None:
    if not text or text == b"-1":
        return None
    try:
        return parse_time_ms(text.decode(errors="replace"), time.time_ns() // 1_000_000)
    except BadPlace as error:
        raise BadInput(f"{where}: {error}") from None


def _topic(text: bytes | None, where: str) -> str | None:
    if not text:
        return None
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{where}: the topic {text!r} is not valid UTF-8") from None


def _partition(text: bytes | None, where: str) -> int | None:
    if not text:
        return None
    number = whole_number(text.decode(errors="replace"), PARTITION_MAX)
    if number is None:
        raise BadInput(f"{where}: {text.decode(errors='replace')!r} is not a partition")
    return number
