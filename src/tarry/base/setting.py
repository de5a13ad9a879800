"""Row of a table of settings: type, default, range, meaning, of broker, topics and clients alike.

A table is text with two or more lines for each key: `key type default check words`, then the
sentence, indented.  The default `-` stands for none and `""` for the empty text.  A check is a
range (`1..`, `0..1`), a choice (`commit|os`), both (`-1|1..9`), or missing.  Types and their bounds
are Kafka's.  The words, each of which may be missing:

* `dynamic`: the key may be changed while the broker runs;
* `tarry`: the key is Tarry's own, Kafka has none like it;
* `hidden`: clients do not get to see it;
* `behind=log.roll.ms,log.roll.hours`: keys of the broker that decide while this one is not given,
  the first that is given; `*60000` behind one of them is the factor to this key's unit.
"""

from __future__ import annotations

import re
from typing import Final

from tarry.base.errors import InvalidSetting

# Scope of a key: Tarry honours it.
HONOURED: Final = "honoured"
# Scope of a key: Tarry does what Kafka's default says; other values ask for something it lacks.
DEFAULT_ONLY: Final = "accepted at its default only"
# Scope of a key: accepted at any value, and named in one warning.
WITHOUT_EFFECT: Final = "without effect"
# Scope of a key: refused, with a sentence that says what to write instead.
GONE: Final = "gone"

# Characters of a value: clients get it as a string of at most 32,767 bytes, four a character.
TEXT_CHARACTERS_MAX: Final = 8_000

Value = bool | int | float | str | tuple[str, ...] | None

_INTEGER_BOUNDS: Final = {
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}
_WORDS: Final = ("dynamic", "hidden", "tarry")
_BEHIND: Final = "behind="
_TYPES: Final = (*_INTEGER_BOUNDS, "double", "boolean", "string", "list")

# Stricter than float(), which accepts "nan", "1_0" and digits of other scripts.
_DOUBLE: Final = r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})([eE][+-]?\d{1,3})?"


class Setting:
    """Row of a table; `behind` has the keys behind this one, with their factors to its unit."""

    __slots__ = (
        "behind",
        "check",
        "default",
        "default_text",
        "is_dynamic",
        "is_hidden",
        "is_ours",
        "key",
        "scope",
        "sentence",
        "type",
    )

    def __init__(
        self, key: str, type_: str, default_text: str | None, check: str, scope: str
    ) -> None:
        assert type_ in _TYPES, key
        self.key = key
        self.type = type_
        self.default_text = default_text
        self.check = check
        self.scope = scope
        self.sentence = ""
        self.is_dynamic = False
        self.is_hidden = False
        self.is_ours = False
        self.behind: tuple[tuple[str, int], ...] = ()
        self.default: Value = None if default_text is None else self.parse(default_text)

    @property
    def attribute(self) -> str:
        """Name of the key as an attribute of `Settings`."""
        return self.key.replace(".", "_")

    def parse(self, text: str) -> Value:
        """Parse the value that a user wrote; `InvalidSetting` with a sentence if it is invalid."""
        if len(text) > TEXT_CHARACTERS_MAX:
            raise InvalidSetting(
                f"{self.key}={shown(text)}: it has {len(text)} characters, "
                f"{TEXT_CHARACTERS_MAX} are the most"
            )
        value = _parse_type(self.key, self.type, text.strip())
        fault = _range_fault(self.check, value)
        if fault:
            raise InvalidSetting(f"{self.key}={shown(text)}: it must be {fault}")
        return value


def read_table(text: str, scope: str) -> list[Setting]:
    """Read the rows of a table in the notation above, in its order."""
    rows: list[Setting] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith(" "):
            row = rows[-1]
            row.sentence = f"{row.sentence} {line.strip()}".lstrip()
            continue
        key, type_, default_text, *rest = line.split()
        default = {"-": None, '""': ""}.get(default_text, default_text)
        words = [word for word in rest if word in _WORDS or word.startswith(_BEHIND)]
        checks = [word for word in rest if word not in words]
        assert len(checks) <= 1, key
        row = Setting(key, type_, default, checks[0] if checks else "", scope)
        row.is_dynamic = "dynamic" in words
        row.is_hidden = "hidden" in words
        row.is_ours = "tarry" in words
        row.behind = _keys_behind(words)
        rows.append(row)
    return rows


def _keys_behind(words: list[str]) -> tuple[tuple[str, int], ...]:
    told = "".join(word.removeprefix(_BEHIND) for word in words if word.startswith(_BEHIND))
    pairs = [one.partition("*") for one in told.split(",") if one]
    return tuple((key, int(factor or "1")) for key, _, factor in pairs)


def shown(text: str) -> str:
    """Return a value fit for a sentence: short, and without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text.strip()[:80])


def value_text(value: Value) -> str | None:
    """Write a value as Kafka does."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        # Java writes 1.5E308.
        return str(value).replace("e+", "E").replace("e-", "E-")
    return str(value)


def _parse_type(key: str, type_: str, text: str) -> Value:
    if type_ in _INTEGER_BOUNDS:
        return _parse_integer(key, type_, text)
    if type_ == "boolean":
        lower = text.lower()
        if lower not in ("true", "false"):
            raise InvalidSetting(f"{key}={shown(text)}: it must be true or false")
        return lower == "true"
    if type_ == "double":
        if re.fullmatch(_DOUBLE, text, re.ASCII) is None:
            raise InvalidSetting(f"{key}={shown(text)}: it must be a number such as 0.5")
        return float(text)
    if type_ == "list":
        return tuple(part for part in (p.strip() for p in text.split(",")) if part)
    return text


def _parse_integer(key: str, type_: str, text: str) -> int:
    low, high = _INTEGER_BOUNDS[type_]
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Stricter than int(), which accepts "1_000" and digits of other scripts.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise InvalidSetting(f"{key}={shown(text)}: it must be a whole number")
    value = int(text)
    if not low <= value <= high:
        raise InvalidSetting(f"{key}={text}: it must lie between {low} and {high}")
    return value


def _range_fault(check: str, value: Value) -> str:
    """Return what the value must be instead; "" if it is valid."""
    if not check:
        return ""
    alternatives = check.split("|")
    given = value if isinstance(value, tuple) else (value,)
    if all(any(_matches(one, value) for one in alternatives) for value in given):
        return ""
    return _either([_alternative_text(one) for one in alternatives])


def _matches(alternative: str, value: Value) -> bool:
    low, dots, high = alternative.partition("..")
    if not dots:
        return str(value) == alternative
    assert isinstance(value, int | float), alternative
    return (not low or value >= int(low)) and (not high or value <= int(high))


def _alternative_text(alternative: str) -> str:
    low, dots, high = alternative.partition("..")
    if not dots:
        return alternative
    return f"from {low} to {high}" if high else f"at least {low}"


def _either(choices: list[str]) -> str:
    if len(choices) == 1:
        return choices[0]
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
