"""Values that are JSON, checked against a JSON Schema while they are parsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from tarry.spark.steps.formats.framing import without_frames
from tarry.spark.steps.formats.json_columns import column_of
from tarry.spark.steps.formats.json_schema import JsonType, read_schema
from tarry.spark.steps.formats.values import (
    NO_VALUE,
    Decoded,
    fitting_rows,
    is_extreme,
    shortened,
)
from tarry.spark.steps.refused import StepRefused

# `Expected `int`, got `str` - at `$.lines[0].amount``
FLAW: Final = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)
MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)

# Names of types as JSON has them.
WORDS: Final = {
    "`int`": "integer",
    "`float`": "number",
    "`str`": "string",
    "`bool`": "boolean",
    "`null`": "null",
    "`object`": "object",
    "`array`": "array",
    "`datetime`": "date-time",
    "`date`": "date",
}


class JsonDecoder:
    """Decoder of JSON."""

    def __init__(self, types: JsonType) -> None:
        self.fields = types.column
        try:
            self._decoder = msgspec.json.Decoder(types.checked)
        except (TypeError, ValueError) as flaw:
            raise StepRefused(f"the JSON Schema cannot be checked by msgspec: {flaw}") from None

    def decode_all(self, values: Sequence[bytes | str | None]) -> Decoded:
        """Decode the values of a batch."""
        errors: list[str | None] = [None] * len(values)
        found: list[Any] = []
        # Any: a null is an error as well, which needs no question of each value.
        decode: Any = self._decoder.decode
        for place, value in enumerate(without_frames(values)):
            try:
                found.append(decode(value))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as flaw:
                found.append(None)
                errors[place] = why_not(value, flaw)
        try:
            columns = column_of(found, self.fields)
            if not is_extreme(columns):
                return Decoded(columns, errors)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            pass
        return fitting_rows(self.fields, found, errors, msgspec.structs.astuple, column_of)


def json_types(schema_text: str) -> JsonType:
    """Return the types of a JSON Schema.  Raises StepRefused."""
    try:
        schema = msgspec.json.decode(schema_text)
    except msgspec.DecodeError as flaw:
        raise StepRefused(f"the JSON Schema is no JSON: {flaw}") from None
    return read_schema(schema)


def why_not(value: bytes | str | None, flaw: Exception) -> str:
    """Say why a value could not be decoded."""
    if value is None:
        return NO_VALUE
    if isinstance(flaw, msgspec.ValidationError):
        return shortened(sentence_of(str(flaw)))
    if isinstance(flaw, RecursionError):
        return "the value is nested too deeply"
    # Releases of msgspec raise different errors for bytes that are not UTF-8.
    told = str(flaw) if isinstance(value, str) or _is_utf8(value) else "it is not UTF-8"
    return f"the value is no JSON: {told}"


def sentence_of(told: str) -> str:
    """Say what msgspec tells, with the field first."""
    match = FLAW.fullmatch(told)
    assert match is not None
    flaw, path = match[1], match[2] or ""
    missing, unknown = MISSING.fullmatch(flaw), UNKNOWN.fullmatch(flaw)
    if missing or unknown:
        found = missing or unknown
        assert found is not None
        path = f"{path}.{found[1]}" if path else found[1]
        return f"field {path} is missing" if missing else f"field {path} is not in the schema"
    for word, plain in WORDS.items():
        flaw = flaw.replace(word, plain)
    # Alternatives come as `int | null`.
    flaw = re.sub(r"`([a-z| ]+)`", lambda one: _alternatives(one[1]), flaw)
    flaw = flaw[:1].lower() + flaw[1:]
    return f"field {path}: {flaw}" if path else f"the value: {flaw}"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _alternatives(text: str) -> str:
    return " or ".join(WORDS.get(f"`{one}`", one) for one in text.split(" | "))
