"""Options of the data source: names in any case, values as text, a sentence for what is refused.

Names and meanings are those of Spark's own Kafka source.  What begins with `kafka.` is a setting of
our client, under Kafka's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tarry.base.spelling import Spelling

# Before the key of a client's setting.
KAFKA_PREFIX: Final = "kafka."

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"

# Of Spark's `timeStringAsMs`; a number alone is milliseconds.
DURATIONS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}

# Of offsets, times and counts.
INT64_MAX: Final = 2**63 - 1
# Python refuses to read numbers of some thousands of digits.
DIGITS_MAX: Final = 100

# What DataFrameReader.load adds when it is given a path.
PATH: Final = "path"


class OptionRefused(ValueError):
    """Option that the data source does not take, or not with this value."""


class OptionTexts:
    """Options by name, as the user gave them, whatever the case of their names."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._texts = {name.lower(): text for name, text in given.items()}

    def text(self, name: str) -> str | None:
        """Return the text of an option; None if it is not given."""
        return self._texts.get(name.lower())

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false."""
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise OptionRefused(f"{name}={text!r:.60} is neither true nor false")
        return text.strip().lower() == "true"

    def count(self, name: str, least: int = 1) -> int | None:
        """Return a whole number; None if it is not given."""
        text = self.text(name)
        if text is None:
            return None
        number = whole_number(text)
        if number is None or number < least:
            raise OptionRefused(f"{name}={text!r:.60} is not a whole number of {least} or more")
        if number > INT64_MAX:
            raise OptionRefused(f"{name}={text!r:.60} is more than {INT64_MAX}")
        return number

    def duration_ms(self, name: str, default_ms: int) -> int:
        """Return a time such as `15m`, `30s` or `500` (milliseconds), in milliseconds."""
        text = self.text(name)
        if text is None:
            return default_ms
        letters = text.strip().lower().lstrip("0123456789")
        number = whole_number(text.strip()[: len(text.strip()) - len(letters)])
        unit_ms = DURATIONS_MS.get(letters.strip() or "ms")
        if number is None or unit_ms is None:
            raise OptionRefused(f"{name}={text!r:.60} is no time, such as 500ms, 30s, 15m or 2h")
        return number * unit_ms

    def kafka_settings(self) -> dict[str, str]:
        """Return what begins with `kafka.` as settings of a client."""
        settings = {
            name.removeprefix(KAFKA_PREFIX): text
            for name, text in self._texts.items()
            if name.startswith(KAFKA_PREFIX)
        }
        if BOOTSTRAP_SERVERS not in settings:
            raise OptionRefused(
                f"the option {KAFKA_PREFIX}{BOOTSTRAP_SERVERS} is missing: give the address of a "
                'broker, such as .option("kafka.bootstrap.servers", "localhost:9092")'
            )
        return settings

    def check_known(self, names: Iterable[str]) -> None:
        """Refuse options that are neither among these names nor settings of a client."""
        known = {name.lower(): name for name in names}
        for name in self._texts:
            if name in known or name.startswith(KAFKA_PREFIX):
                continue
            if name == PATH:
                raise OptionRefused(
                    "load and save take no path here: name topics by options, such as "
                    '.option("subscribe", "orders")'
                )
            near = Spelling(known).near(name)
            hint = f"; did you mean {known[near]}?" if near else "."
            raise OptionRefused(
                f"there is no option {name!r:.60}{hint} A setting of the client begins with "
                f"{KAFKA_PREFIX}"
            )


def whole_number(text: str) -> int | None:
    """Return the number that a text of digits is; None for more digits than any number has."""
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX
    return int(stripped) if is_number else None
