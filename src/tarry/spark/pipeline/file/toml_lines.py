"""Lines of the keys of a TOML file, which `tomllib` does not tell.

The text has been read by `tomllib` before, so it is TOML, and only what lies between keys is passed
over here: strings, arrays, inline tables, comments.
"""

from __future__ import annotations

import tomllib
from typing import Final

# Names of keys and places in arrays, from the outermost on.
KeyPath = tuple[str | int, ...]

BLANK: Final = " \t\r\n"
QUOTES: Final = ('"""', "'''", '"', "'")
VALUE_ENDS: Final = ",]}#\n"


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each key, table and element of an array; the first line is 1."""
    return _Scanner(text).lines()


class _Scanner:
    """Scanner at a position of the text."""

    def __init__(self, text: str) -> None:
        self._text = text + "\n"
        self._at = 0
        self._found: dict[KeyPath, int] = {}
        # Tables of each array of tables.
        self._counts: dict[KeyPath, int] = {}

    def lines(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip():
            if self._looking_at("[["):
                self._at += 2
                line, path = self._key((), "]")
                count = self._counts.get(path, 0)
                self._counts[path] = count + 1
                self._at += 2
                table = (*path, count)
                self._note(path, line)
                self._note(table, line)
            elif self._looking_at("["):
                self._at += 1
                line, table = self._key((), "]")
                self._at += 1
                self._note(table, line)
            else:
                self._entry(table)
        return self._found

    def _entry(self, table: KeyPath) -> None:
        """Pass over a key and its value."""
        line, path = self._key(table, "=")
        for length in range(len(table) + 1, len(path) + 1):
            self._note(path[:length], line)
        self._at += 1
        self._value(path)

    def _key(self, table: KeyPath, end: str) -> tuple[int, KeyPath]:
        """Pass over a key up to a character; return its line and path below the table."""
        self._skip()
        start = self._at
        while not self._looking_at(end):
            self._at = self._string_end() if self._looking_at(*QUOTES) else self._at + 1
        parsed = tomllib.loads(self._text[start : self._at] + "= 0")
        path = table
        while isinstance(parsed, dict):
            ((name, parsed),) = parsed.items()
            path = (*path, name)
            # Within an array of tables, a name means the last one so far.
            if not table and isinstance(parsed, dict) and path in self._counts:
                path = (*path, self._counts[path] - 1)
        return self._text.count("\n", 0, start) + 1, path

    def _value(self, path: KeyPath) -> None:
        self._skip()
        if self._looking_at("{"):
            self._at += 1
            while self._skip() and not self._looking_at("}"):
                self._entry(path)
                self._skip()
                self._at += self._looking_at(",")
            self._at += 1
        elif self._looking_at("["):
            self._at += 1
            place = 0
            while self._skip() and not self._looking_at("]"):
                self._note((*path, place), self._text.count("\n", 0, self._at) + 1)
                self._value((*path, place))
                place += 1
                self._skip()
                self._at += self._looking_at(",")
            self._at += 1
        elif self._looking_at(*QUOTES):
            self._at = self._string_end()
        else:
            while self._text[self._at] not in VALUE_ENDS:
                self._at += 1

    def _string_end(self) -> int:
        """Return the position behind the string that begins here."""
        quote = next(quote for quote in QUOTES if self._text.startswith(quote, self._at))
        at = self._at + len(quote)
        while not self._text.startswith(quote, at):
            at += 2 if self._text[at] == "\\" and quote[0] == '"' else 1
        at += len(quote)
        # A multi-line string may end with quotes of its own.
        while len(quote) == 3 and self._text[at] == quote[0]:
            at += 1
        return at

    def _skip(self) -> bool:
        """Pass over blanks and comments; False at the end."""
        while self._at < len(self._text) and self._text[self._at] in BLANK + "#":
            if self._text[self._at] == "#":
                self._at = self._text.index("\n", self._at)
            self._at += 1
        return self._at < len(self._text)

    def _looking_at(self, *texts: str) -> bool:
        return self._text.startswith(texts, self._at)

    def _note(self, path: KeyPath, line: int) -> None:
        self._found.setdefault(path, line)
