"""Where settings are written: Java's properties format, the environment, `key=value` words.

Pure text to a dict of texts; reading the file and the environment is the shell's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tarry.base.errors import InvalidSetting

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

ENVIRONMENT_PREFIX: Final = "TARRY_"
# Names that steer the program and are no settings: where clients begin, the settings' file, the
# interpreted form.
ENVIRONMENT_RESERVED: Final = ("TARRY_BOOTSTRAP_SERVERS", "TARRY_CONFIG", "TARRY_PURE")
# What steers the tests may stand in the environment of a broker that they start.
ENVIRONMENT_TESTS: Final = "TARRY_TEST_"


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file; a later line of a key wins."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        values[_unescaped(key)] = _unescaped(value)
    return values


def parse_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`TARRY_LOG_DIRS` stands for `log.dirs`, and so for every key."""
    values: dict[str, str] = {}
    for name in sorted(environment):
        is_ours = name in ENVIRONMENT_RESERVED or name.startswith(ENVIRONMENT_TESTS)
        if name.startswith(ENVIRONMENT_PREFIX) and not is_ours:
            key = name[len(ENVIRONMENT_PREFIX) :].lower().replace("_", ".")
            values[key] = environment[name]
    return values


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """`key=value` words; a later one of a key wins."""
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise InvalidSetting(f'"{word}" is no setting: write key=value')
        values[key.strip()] = value.strip()
    return values


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and blank ones, joined where a backslash ends one."""
    lines: list[str] = []
    joined = ""
    is_continued = False
    # Not splitlines(): form feeds and Unicode's separators end no line of a properties file.
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(_BLANKS)
        if not is_continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        joined += line[:-1] if is_continued else line
        if not is_continued:
            lines.append(joined)
            joined = ""
    if joined:
        lines.append(joined)
    return lines


def _split(line: str) -> tuple[str, str]:
    """The key ends at the first `=`, `:` or blank that no backslash protects."""
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
        raise InvalidSetting(f'"\\u{digits}" is no character: four hex digits belong there') from (
            None
        )
