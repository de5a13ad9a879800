"""Sources of settings: Java's properties format, the environment, `key=value` words.

All return texts by key, each with its place.  Other code reads the file and the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tarry.base.errors import InvalidSetting

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

ENVIRONMENT_PREFIX: Final = "TARRY_"
# Names that are no settings and steer programs: the clients' servers, the broker's file of
# settings, the clients' profile and the file of profiles, the interpreted form, whether an
# installation compiles.
ENVIRONMENT_RESERVED: Final = (
    "TARRY_BOOTSTRAP_SERVERS",
    "TARRY_COMPILE",
    "TARRY_CONFIG",
    "TARRY_PROFILE",
    "TARRY_PROFILES",
    "TARRY_PURE",
)
# Prefix of names that steer the tests, which may be in the environment of a broker that they start.
ENVIRONMENT_TESTS: Final = "TARRY_TEST_"


# Names that Kubernetes sets in every container beside a Service named "tarry": its address, under
# names that look like settings.
_KUBERNETES_NAMES: Final = re.compile(r"TARRY_SERVICE_.+|TARRY_PORT_[0-9]+_.+")
_KUBERNETES_PORT: Final = "TARRY_PORT"
_KUBERNETES_PORT_VALUE: Final = re.compile(r"[a-z]+://")


class SettingTexts:
    """Texts of all keys that were given, with their places; a later source of a key wins."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        # Key -> its place, for sentences about it.
        self.sources: dict[str, str] = {}

    def add_properties(self, text: str, name: str) -> None:
        """Add the settings of a properties file; a later line of a key wins."""
        for number, line in _logical_lines(text):
            source = f"file {name} line {number}"
            key, value = _split(line)
            try:
                self._add(_unescaped(key), _unescaped(value), source)
            except InvalidSetting as error:
                raise InvalidSetting(f"{error} ({source})") from None

    def add_environment(self, environment: Mapping[str, str]) -> None:
        """Add the settings of the environment: `TARRY_LOG_DIRS` stands for `log.dirs`."""
        for name in sorted(environment):
            if name.startswith(ENVIRONMENT_PREFIX) and not _is_other(name, environment[name]):
                key = name[len(ENVIRONMENT_PREFIX) :].lower().replace("_", ".")
                self._add(key, environment[name], f"environment {name}")

    def add_assignments(self, words: Iterable[str]) -> None:
        """Add the `key=value` words of `--set`; a later one of a key wins."""
        for word in words:
            key, equals, value = word.partition("=")
            if not equals or not key.strip():
                raise InvalidSetting(f'--set "{word}" is not understood: write key=value')
            self._add(key.strip(), value.strip(), "--set")

    def _add(self, key: str, text: str, source: str) -> None:
        self.texts[key] = text
        self.sources[key] = source


def _is_other(name: str, value: str) -> bool:
    """Return True if a name in the environment has Tarry's prefix and is no setting."""
    if name in ENVIRONMENT_RESERVED or name.startswith(ENVIRONMENT_TESTS):
        return True
    if name == _KUBERNETES_PORT:
        return _KUBERNETES_PORT_VALUE.match(value) is not None
    return _KUBERNETES_NAMES.fullmatch(name) is not None


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with the number at which each begins; a final backslash joins two lines.

    Comments and blank lines are left out.
    """
    lines: list[tuple[int, str]] = []
    joined = ""
    first = 0
    is_continued = False
    # Not splitlines(): form feeds and Unicode's separators do not end a line of a properties file.
    raws = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, raw in enumerate(raws, start=1):
        line = raw.lstrip(_BLANKS)
        if not is_continued and (not line or line[0] in "#!"):
            continue
        if not is_continued:
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        joined += line[:-1] if is_continued else line
        if not is_continued:
            lines.append((first, joined))
            joined = ""
    if joined:
        lines.append((first, joined))
    return lines


def _split(line: str) -> tuple[str, str]:
    """Split a line into key and value at the first `=`, `:` or blank that no backslash protects."""
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    key = line[:end]
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            parts.append(text[at])
            at += 1
            continue
        letter = text[at + 1 : at + 2]
        if letter == "u":
            parts.append(_code_point(text[at + 2 : at + 6]))
            at += 6
        else:
            parts.append(_ESCAPES.get(letter, letter))
            at += 2
    return "".join(parts)


def _code_point(digits: str) -> str:
    try:
        return bytes.fromhex(digits).decode("utf-16-be")
    except ValueError:
        raise InvalidSetting(f'"\\u{digits}" is not a character: write four hex digits') from (None)
