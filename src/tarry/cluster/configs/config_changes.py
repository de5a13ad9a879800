"""Changes of one resource's settings by one request: the new texts, or why they are refused.

Both of Kafka's forms are here: operations on single keys (set, delete, append, subtract), and the
older form that replaces all keys.  The checks come in Kafka's order; the resource itself checks
whether the values are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tarry.base import errors
from tarry.base.setting import Setting, shown

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
OPERATIONS: Final = (SET, DELETE, APPEND, SUBTRACT)

# Key, operation and value, as the client sent them.
KeyChange = tuple[str, int, str | None]


class ConfigRefusal(Exception):
    """Refusal of changes to the settings of one resource; caught where its outcome is made."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


def check_form(changes: list[KeyChange]) -> None:
    """Raise `ConfigRefusal` for a key that is given twice, has no value or an unknown operation."""
    seen: dict[str, None] = {}
    for key, _, _ in changes:
        if key in seen:
            raise ConfigRefusal(errors.INVALID_REQUEST, f"{shown(key)} is named twice")
        seen[key] = None
    for key, operation, value in changes:
        if operation not in OPERATIONS:
            raise ConfigRefusal(
                errors.INVALID_REQUEST, f"{shown(key)}: there is no operation {operation}"
            )
        if operation != DELETE and value is None:
            raise ConfigRefusal(errors.INVALID_REQUEST, f"{shown(key)} has no value")


def changed_texts(
    current: Mapping[str, str],
    changes: list[KeyChange],
    rows: Mapping[str, Setting],
    text_without: Callable[[str], str],
) -> dict[str, str]:
    """Return the resource's texts after these changes, whose form `check_form` has checked.

    `text_without` returns the text of a list that the resource does not set: APPEND adds to that.
    """
    changed = dict(current)
    for key, operation, value in changes:
        if operation == DELETE:
            changed.pop(key, None)
            continue
        assert value is not None
        if operation == SET:
            changed[key] = value
        else:
            changed[key] = _changed_list(key, operation, value, rows, changed, text_without)
    return changed


def _changed_list(
    key: str,
    operation: int,
    value: str,
    rows: Mapping[str, Setting],
    current: Mapping[str, str],
    text_without: Callable[[str], str],
) -> str:
    row = rows.get(key)
    if row is None or row.type != "list":
        verb = "append to" if operation == APPEND else "subtract from"
        raise ConfigRefusal(errors.INVALID_CONFIG, f"{shown(key)} is no list to {verb}")
    text = current.get(key)
    members = dict.fromkeys(_members(text_without(key) if text is None else text))
    for member in _members(value):
        if operation == APPEND:
            members[member] = None
        else:
            members.pop(member, None)
    return ",".join(members)


def _members(text: str) -> list[str]:
    return [member for member in (part.strip() for part in text.split(",")) if member]
