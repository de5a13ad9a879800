"""Values of a pipeline file: each kind takes what TOML has and returns what the program uses.

A kind raises ValueError with the end of a sentence whose subject is the key.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tarry.base.errors import InvalidSetting
from tarry.client.settings import (
    CLIENT_SETTINGS,
    CONSUMER,
    PRODUCER,
    ConsumerSettings,
    ProducerSettings,
    parse_addresses,
)
from tarry.spark.option_table import REFUSED_SETTINGS
from tarry.spark.options import DURATIONS_MS
from tarry.spark.reading.bounds import AT_EARLIEST, AT_LATEST
from tarry.spark.writing.write_options import DECIDED, is_decided_so

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Files are named after it, with some letters more.
NAME_LETTERS_MAX: Final = 200
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]+")
TOPIC_LETTERS_MAX: Final = 249
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# A hundred years: what Spark reckons with in microseconds.
DURATION_MS_MAX: Final = 36_500 * DURATIONS_MS["d"]
DURATION: Final = re.compile(r"([0-9]{1,18}) ?(ms|s|m|min|h|d)")
# Begin of a URL, also of one with a single slash.
URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class Kind:
    """Kind of a value; `told` is how the reference names it."""

    told = "text"

    def read(self, value: Any, folder: Path) -> Any:
        """Return the value as the program uses it; paths count from the folder."""
        if not isinstance(value, str):
            raise ValueError(f"is {toml_word(value)}, and it must be a text in quotes")
        if not value.strip():
            raise ValueError("is empty")
        return value


class Name(Kind):
    """Name of a pipeline or a stage, which a directory is named after."""

    told = "name"

    def read(self, value: Any, folder: Path) -> str:
        text: str = super().read(value, folder)
        if not NAME.fullmatch(text):
            raise ValueError(f"{text!r:.60} may have letters, digits, dots, dashes and underscores")
        if len(text) > NAME_LETTERS_MAX:
            raise ValueError(f"{text!r:.60} has more than {NAME_LETTERS_MAX} letters")
        return text


class TopicName(Kind):
    """Name of a topic."""

    told = "topic"

    def read(self, value: Any, folder: Path) -> str:
        text: str = super().read(value, folder)
        if not TOPIC.fullmatch(text) or text in (".", "..") or len(text) > TOPIC_LETTERS_MAX:
            raise ValueError(
                f"{text!r:.60} cannot be a topic's name: letters, digits, dots, dashes and "
                f"underscores, {TOPIC_LETTERS_MAX} at most"
            )
        return text


class Addresses(Kind):
    """Addresses of a cluster's brokers."""

    told = "addresses"

    def read(self, value: Any, folder: Path) -> str:
        text: str = super().read(value, folder)
        try:
            parse_addresses(text)
        except InvalidSetting as error:
            raise ValueError(str(error)) from None
        return text


class Word(Kind):
    """Word out of a few."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.told = ", ".join(words)

    def read(self, value: Any, folder: Path) -> str:
        if value not in self._words:
            raise ValueError(f"is {value!r:.60}, and it must be one of {self.told}")
        return str(value)


class Texts(Kind):
    """List of one or more values of another kind, each once."""

    def __init__(self, each: Kind) -> None:
        self._each = each
        self.told = f"list of {each.told}s"

    def read(self, value: Any, folder: Path) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError(
                f"is {toml_word(value)}, and it must be a list with one {self._each.told} or more, "
                f'such as ["orders"]'
            )
        found = tuple(self._each.read(one, folder) for one in value)
        for one in found:
            if found.count(one) > 1:
                raise ValueError(f"has {one!r:.60} twice")
        return found


class Column(Kind):
    """Name of a column of the decoded records."""

    told = "column"

    def read(self, value: Any, folder: Path) -> str:
        text: str = super().read(value, folder)
        if text.startswith("_"):
            raise ValueError(
                f"{text!r:.60} begins with an underscore, as columns of Tarry's own do"
            )
        if "`" in text:
            raise ValueError(f"{text!r:.60} has a backtick, which ends a name in SQL")
        return text


class Duration(Kind):
    """Duration, such as 500ms, 30s, 5m, 24h or 7d; kept as text without blanks."""

    told = "duration"

    def read(self, value: Any, folder: Path) -> str:
        found = DURATION.fullmatch(value) if isinstance(value, str) else None
        if found is None or int(found[1]) == 0:
            raise ValueError(f"is {value!r:.60}, and it must be a duration such as 30s, 5m or 24h")
        text = f"{int(found[1])}{found[2]}"
        if duration_ms(text) > DURATION_MS_MAX:
            raise ValueError(f"is {value!r:.60}, and it must not be longer than 36500d")
        return text


class WholeNumber(Kind):
    """Whole number of 1 or more."""

    told = "number"

    def read(self, value: Any, folder: Path) -> int:
        if type(value) is not int or value < 1:
            raise ValueError(f"is {toml_word(value)}, and it must be a whole number of 1 or more")
        return value


def _place(text: str, folder: Path) -> Path:
    """Return a path, which counts from the folder of the file or from a user's home."""
    if "\0" in text:
        raise ValueError(f"{text!r:.60} has a zero byte, which no path has")
    try:
        path = folder / Path(text).expanduser()
        # A name may be too long, and a directory closed to the user.
        path.exists()
    except RuntimeError:
        raise ValueError(f"{text!r:.60} names a user whose home is not known") from None
    except OSError as error:
        told = f"{text!r:.60} is no path that can be looked at: {error.strerror}"
        raise ValueError(told) from None
    return path


class FilePath(Kind):
    """Path of a file that is there."""

    told = "file"

    def read(self, value: Any, folder: Path) -> Path:
        text: str = super().read(value, folder)
        path = _place(text, folder)
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        return path


class Directory(Kind):
    """Path of a directory, which is made when it is needed."""

    told = "directory"

    def read(self, value: Any, folder: Path) -> Path:
        text: str = super().read(value, folder)
        if URL.match(text):
            raise ValueError(
                f"{text!r:.100} is no directory of a file system; driver and workers need one that "
                "they share (local, NFS, a mounted volume)"
            )
        path = _place(text, folder).absolute()
        there = next(one for one in (path, *path.parents) if one.exists())
        if not there.is_dir():
            raise ValueError(f"{there} is no directory")
        return path


class WebAddress(Kind):
    """Address of a service that is asked by HTTP."""

    told = "address"

    def read(self, value: Any, folder: Path) -> str:
        text: str = super().read(value, folder)
        try:
            parts = urlsplit(text)
            is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            # Without the text, which may have a password.
            raise ValueError("must be an address such as http://host:8081")
        return text


class Start(Kind):
    """Place where a new query begins: `earliest`, `latest` or a time, in milliseconds."""

    told = "earliest, latest or a time"

    def read(self, value: Any, folder: Path) -> str | int:
        if value in (AT_EARLIEST, AT_LATEST):
            return str(value)
        if isinstance(value, str):
            try:
                value = datetime.datetime.fromisoformat(value)
            except ValueError:
                value = None
        if not isinstance(value, datetime.datetime) or value.tzinfo is None:
            raise ValueError(
                "must be earliest, latest or a time with its zone, such as 2026-11-22T08:00:00Z"
            )
        if value < EPOCH:
            raise ValueError("is before 1970, when no record was: write earliest")
        # In whole numbers: a float may be a millisecond too small.
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)


class Expression(Kind):
    """Expression in SQL; Spark parses it before anything starts."""

    told = "SQL expression"


class Expressions(Kind):
    """Expressions by the names of the fields that they become."""

    told = "table of SQL expressions"

    def read(self, value: Any, folder: Path) -> dict[str, str]:
        if not isinstance(value, dict) or not value:
            raise ValueError('must name a field at least, such as { orders = "count(*)" }')
        for name, text in value.items():
            try:
                Column().read(name, folder)
            except ValueError as error:
                raise ValueError(f"names a field that cannot be: {error}") from None
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"has {name!r:.60}, which is no text with an expression")
        return value


class SparkValue(Kind):
    """Value of a setting of Spark's: a text, a number, true or false."""

    told = "setting"

    def read(self, value: Any, folder: Path) -> str:
        if not isinstance(value, str | int | float):
            raise ValueError(
                f"is {toml_word(value)}, and it must be one text or number; write the key in "
                'quotes: "spark.driver.memory" = "4g"'
            )
        return setting_text(value)


class KafkaSettings(Kind):
    """Settings of the clients, under Kafka's keys."""

    told = "Kafka's keys"

    def read(self, value: Any, folder: Path) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise ValueError(f"is {toml_word(value)}, and it must be a table of Kafka's keys")
        settings: dict[str, str] = {}
        for key, each in value.items():
            if isinstance(each, dict):
                raise ValueError(f'write the key in quotes: "{key}..." = ...')
            if not isinstance(each, (str, int, float)):
                raise ValueError(
                    f"has {key} = {toml_word(each)}, and it must be one text or number"
                )
            settings[key] = setting_text(each)
        if "bootstrap.servers" in settings:
            raise ValueError("bootstrap.servers stands in [source], as bootstrap")
        for key, reason in {**REFUSED_SETTINGS, **DECIDED}.items():
            if key in settings and not is_decided_so(key, settings[key]):
                raise ValueError(f"{key} is not taken: {reason}")
        try:
            ConsumerSettings(of_owner(settings, CONSUMER))
            ProducerSettings(of_owner(settings, PRODUCER))
            # A key that nobody knows is refused with a guess.
            ConsumerSettings({key: text for key, text in settings.items() if not _is_known(key)})
        except InvalidSetting as error:
            raise ValueError(str(error)) from None
        return settings


def setting_text(value: str | float) -> str:
    """Return the text of a setting's value; true and false are written small."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def of_owner(settings: Mapping[str, str], owner: str) -> dict[str, str]:
    """Return the settings of one kind of client, of those that are known."""
    other = PRODUCER if owner == CONSUMER else CONSUMER
    return {
        key: text
        for key, text in settings.items()
        if _is_known(key) and CLIENT_SETTINGS[key].scope != other
    }


def _is_known(key: str) -> bool:
    return key in CLIENT_SETTINGS


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration that was read."""
    letters = text.lstrip("0123456789")
    return int(text.removesuffix(letters)) * DURATIONS_MS[letters]


def toml_word(value: object) -> str:
    """Return what TOML calls a value, for a sentence."""
    words = {bool: "true or false", int: "a number", float: "a number with a point"}
    words |= {str: "a text", list: "a list", dict: "a table"}
    if isinstance(value, list) and not value:
        return "an empty list"
    return words.get(type(value), "a date or time")
