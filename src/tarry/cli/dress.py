"""Dress of printed keys and values: they are unpacked, escaped and coloured.

A record itself is left as it is, so that sizes stay those of the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from tarry.cli.packing import Form, Misfit

Change = Callable[[bytes], bytes]

_RESET: Final = b"\x1b[0m"
_KEY: Final = b"\x1b[36m"
_FOUND: Final = b"\x1b[1;31m"

# Control characters that a terminal would obey, also beyond ASCII; tab and newline are harmless.
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class Dress:
    """Changes of keys, values and parts of headers; None leaves them as they are."""

    def __init__(
        self, key: Change | None = None, value: Change | None = None, header: Change | None = None
    ) -> None:
        self._key = key
        self._value = value
        self._header = header

    @property
    def is_plain(self) -> bool:
        """True if nothing is changed."""
        return self._key is None and self._value is None and self._header is None

    def key(self, content: bytes | None) -> bytes | None:
        return content if content is None or self._key is None else self._key(content)

    def value(self, content: bytes | None) -> bytes | None:
        return content if content is None or self._value is None else self._value(content)

    def header(self, part: bytes) -> bytes:
        """Change the name of a header, or its value."""
        return part if self._header is None else self._header(part)


PLAIN: Final = Dress()


def dressed_for_files(key_form: Form | None, value_form: Form | None) -> Dress:
    """Make a dress that only unpacks."""
    return Dress(_unpacker("key", key_form), _unpacker("value", value_form))


def dressed_for_terminals(
    key_form: Form | None,
    value_form: Form | None,
    patterns: Sequence[re.Pattern[bytes]],
    *,
    has_colours: bool,
) -> Dress:
    """Make a dress that unpacks, escapes control characters, and colours if colours are wanted."""
    marks = patterns if has_colours else ()
    return Dress(
        _chain(_unpacker("key", key_form), _for_screen(_KEY if has_colours else b"", marks)),
        _chain(_unpacker("value", value_form), _for_screen(b"", marks)),
        visible,
    )


def _unpacker(what: str, form: Form | None) -> Change | None:
    if form is None:
        return None

    def unpack(content: bytes) -> bytes:
        try:
            return form.unpack(content)
        except Misfit as error:
            raise Misfit(f"the {what} cannot be printed: {error}") from None

    return unpack


def _chain(first: Change | None, second: Change) -> Change:
    if first is None:
        return second
    return lambda content: second(first(content))


def _for_screen(colour: bytes, marks: Sequence[re.Pattern[bytes]]) -> Change:
    def change(content: bytes) -> bytes:
        shown = visible(content)
        for mark in marks:
            shown = mark.sub(
                lambda found: _FOUND + found[0] + _RESET + colour if found[0] else b"", shown
            )
        return colour + shown + _RESET if colour else shown

    return change


def visible(content: bytes) -> bytes:
    """Return the text with `\\xNN` for control characters and for bytes that are no UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        content = content.decode(errors="backslashreplace").encode()
    return _CONTROLS.sub(lambda found: b"\\x%02x" % ord(found[0].decode()), content)
