"""Forms of keys and values: numbers that are packed into bytes, hex and base64, as text.

A form is a name (`int32`, `hex`) or one of kcat's pack strings (`>iq`, `hi s`), which names
several fields of one key or value.  `unpack` makes text of the bytes, `pack` bytes of the text;
text is bytes as well, because it goes where keys and values go.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from typing import Final

NUMBERS: Final = {
    "int8": ">b",
    "uint8": ">B",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "uint64": ">Q",
    "float": ">f",
    "double": ">d",
}

NAMES: Final = ("text", "hex", "base64", *NUMBERS)

# kcat's letters for fields of fixed size; `c` is one plain byte, `s` is all bytes that are left.
FIELDS: Final = "bBhHiIqQc"
ORDERS: Final = "<>"


class BadForm(ValueError):
    """A form that does not exist."""


class Misfit(ValueError):
    """Bytes or text that do not have the form; the sentence says why."""


class Form:
    """Two functions under one name."""

    def __init__(
        self, name: str, unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]
    ) -> None:
        self.name = name
        self.unpack = unpack
        self.pack = pack


def parse_form(text: str) -> Form | None:
    """Parse the form of this name or pack string; None for plain text, which needs no work."""
    if text in ("text", "s"):
        return None
    if text == "hex":
        return Form(text, _to_hex, _of_hex)
    if text == "base64":
        return Form(text, base64.b64encode, _of_base64)
    layout = NUMBERS.get(text, text)
    _check_layout(text, layout)
    return Form(
        text, lambda data: _unpack(layout, text, data), lambda data: _pack(layout, text, data)
    )


def _check_layout(text: str, layout: str) -> None:
    known = FIELDS + ORDERS + " s$" + ("fd" if text in NUMBERS else "")
    body = layout.rstrip("$")
    is_sound = bool(body.strip(ORDERS + " ")) and all(letter in known for letter in layout)
    # `s` takes all bytes that are left, so it must be the last field; `$` must end the layout.
    if not is_sound or "s" in body[:-1] or "$" in body or len(layout) - len(body) > 1:
        raise BadForm(
            f"unknown form {text!r}; use one of {', '.join(NAMES)}, or a pack string of kcat's "
            f"letters {FIELDS}s with < or > before them"
        )


def _fields(layout: str) -> list[str]:
    """Return each field with its byte order, such as `>i`; big-endian unless `<` came before."""
    found: list[str] = []
    order = ">"
    for letter in layout:
        if letter in ORDERS:
            order = letter
        elif letter not in " $":
            found.append(order + letter)
    return found


def _unpack(layout: str, name: str, data: bytes) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for field in _fields(layout):
        if field[1] == "s":
            pieces.append(data[position:])
            position = len(data)
            continue
        end = position + struct.calcsize(field)
        if end > len(data):
            raise Misfit(f"{_bytes(len(data))}, too short for the form {name!r}")
        (value,) = struct.unpack(field, data[position:end])
        pieces.append(value if isinstance(value, bytes) else str(value).encode())
        position = end
    # kcat ignores bytes behind the fields unless `$` forbids them; a single number may have none.
    if position < len(data) and (name in NUMBERS or layout.endswith("$")):
        raise Misfit(f"{_bytes(len(data))}, too long for the form {name!r}")
    return b" ".join(pieces)


def _pack(layout: str, name: str, text: bytes) -> bytes:
    fields = _fields(layout)
    words = text.split(b" ", len(fields) - 1)
    if len(words) != len(fields):
        raise Misfit(
            f"{_shown(text)} has {len(words)} of the {len(fields)} fields of the form {name!r}"
        )
    try:
        return b"".join([_packed(field, word) for field, word in zip(fields, words, strict=True)])
    except (ValueError, struct.error, OverflowError):
        raise Misfit(f"{_shown(text)} does not fit the form {name!r}") from None


def _packed(field: str, word: bytes) -> bytes:
    letter = field[1]
    if letter == "s":
        return word
    if letter == "c":
        return struct.pack(field, word)
    return struct.pack(field, float(word) if letter in "fd" else int(word))


def _to_hex(data: bytes) -> bytes:
    return binascii.hexlify(data)


def _of_hex(text: bytes) -> bytes:
    try:
        return binascii.unhexlify(text.replace(b" ", b""))
    except binascii.Error:
        raise Misfit(f"{_shown(text)} is not hexadecimal: pairs of 0-9 and a-f") from None


def _of_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Misfit(f"{_shown(text)} is not base64") from None


def _shown(text: bytes) -> str:
    return repr(text[:40].decode(errors="backslashreplace"))


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
