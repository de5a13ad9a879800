"""Values that are JSON, checked against a JSON Schema while they are parsed."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, Final

import msgspec

from tarry.spark.steps.formats.framing import without_frame
from tarry.spark.steps.formats.json_schema import read_schema
from tarry.spark.steps.formats.values import BadValue
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

# Types that columns take as they are.
PLAIN: Final = (datetime, date)


class JsonDecoder:
    """Decoder of JSON."""

    def __init__(self, schema_text: str) -> None:
        try:
            schema = msgspec.json.decode(schema_text)
        except msgspec.DecodeError as flaw:
            raise StepRefused(f"the JSON Schema is no JSON: {flaw}") from None
        types = read_schema(schema)
        self.fields = types.column
        try:
            self._decoder = msgspec.json.Decoder(types.checked)
        except (TypeError, ValueError) as flaw:
            raise StepRefused(f"the JSON Schema cannot be checked by msgspec: {flaw}") from None

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the fields of an object."""
        text = without_frame(value)
        try:
            found = self._decoder.decode(text)
            row: dict[str, Any] = msgspec.to_builtins(found, builtin_types=PLAIN)
        except msgspec.ValidationError as flaw:
            raise BadValue(sentence_of(str(flaw))) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as flaw:
            # Releases of msgspec raise different errors for bytes that are not UTF-8.
            told = str(flaw) if _is_utf8(text) else "it is not UTF-8"
            raise BadValue(f"the value is no JSON: {told}") from None
        except RecursionError:
            raise BadValue("the value is nested too deeply") from None
        return row


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
