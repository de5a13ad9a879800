"""Records as lines of JSON: the shape of `tarry consume --json`, and those of kcat and rpk.

| | ours | kcat -J | rpk |
|---|---|---|---|
| value | `value`, `value_base64` | `payload` | `value` |
| time | `timestamp` | `ts` | `timestamp` |
| headers | `[{"name": n, "value": v}]` | `[n, v, n, v]` | `[{"key": n, "value": v}]` |

An object may be spread over several lines if its first line is `{` and its last `}`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from tarry.cli.guesses import nearest
from tarry.cli.input import BadInput, InputRecord
from tarry.cli.units import OFFSET_MAX, PARTITION_MAX

Headers = list[tuple[str, bytes | None]]

# Fields that are ignored: the place that a printed record had, and its sizes.
IGNORED: Final = ("offset", "tstype", "broker", "value_size", "key_size", "time")
OURS: Final = ("value", "value_base64", "key", "key_base64", "headers", "timestamp")
KCATS: Final = ("payload", "ts")
KNOWN: Final = (*OURS, *KCATS, "topic", "partition", *IGNORED)

# Timestamp that kcat prints for a record without a time.
NO_TIME: Final = -1


def objects_of(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines as numbered objects: empty lines are left out, spread objects put together;
    an object has the number of its first line."""
    first = 0
    parts: list[bytes] = []
    for number, line in lines:
        stripped = line.strip()
        if parts:
            parts.append(line)
            if stripped == b"}" and not line.startswith((b" ", b"\t")):
                yield first, b"\n".join(parts)
                parts = []
        elif stripped == b"{":
            first, parts = number, [line]
        elif stripped:
            yield number, line
    if parts:
        yield first, b"\n".join(parts)


def record_of_json(text: bytes, where: str) -> InputRecord:
    """Read an object as a record, with its place; `where` names the line in what is raised."""
    try:
        return _record(object_of_json(text))
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None


def record_of_object(
    found: dict[str, Any], where: str, fields_taken: tuple[str, ...]
) -> InputRecord:
    """Return the record of a decoded object, from which `fields_taken` were taken out before."""
    try:
        return _record(found, fields_taken)
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None


def object_of_json(text: bytes) -> dict[str, Any]:
    """Decode one object; `ValueError` with a sentence if it is none."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        place = re.search(r"byte (\d+)", str(error))
        at = f" at byte {place[1]}" if place else ""
        raise ValueError(f"not valid JSON{at}; write one object for each record") from None
    except UnicodeDecodeError:
        raise ValueError("not valid UTF-8, which JSON has to be") from None
    except RecursionError:
        raise ValueError("nested too deeply to be a record") from None
    if not isinstance(found, dict):
        raise ValueError(f"{_kind(found)} is not a record; write an object such as {EXAMPLE}")
    return found


EXAMPLE: Final = '{"key": "k", "value": "v"}'


def _record(found: dict[str, Any], fields_taken: tuple[str, ...] = ()) -> InputRecord:
    for name in found:
        if name not in KNOWN:
            near = nearest(name, (*fields_taken, *KNOWN))
            fields = ", ".join((*fields_taken, *OURS))
            hint = f"did you mean {near}?" if near else f"the fields are {fields}"
            raise ValueError(f"unknown field {name!r}; {hint}")
    named = [name for name in ("value", "value_base64", "payload") if name in found]
    if not named:
        raise ValueError("a record needs a value, value_base64 or payload; null is written null")
    if len(named) > 1:
        raise ValueError(f"{named[0]} and {named[1]} exclude each other")
    return InputRecord(
        _text("payload", found["payload"]) if "payload" in found else _content("value", found),
        _content("key", found),
        _headers(found.get("headers")),
        _timestamp(found),
        _topic(found.get("topic")),
        _whole("partition", found.get("partition"), 0, PARTITION_MAX),
    )


def _content(name: str, found: dict[str, Any]) -> bytes | None:
    encoded_name = f"{name}_base64"
    if encoded_name not in found:
        return _text(name, found.get(name))
    if name in found:
        raise ValueError(f"{name} and {encoded_name} exclude each other")
    encoded = found[encoded_name]
    try:
        if not isinstance(encoded, str):
            raise ValueError
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise ValueError(f"{encoded_name} is not base64") from None


def _text(name: str, value: object) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(
            f"{name} is {_kind(value)}, and only text or null can be sent; put it in quotes"
        )
    return value.encode()


def _headers(given: object) -> Headers:
    if given is None:
        return []
    if not isinstance(given, list):
        raise ValueError(
            f'headers is {_kind(given)}; write a list of objects: [{{"name": "n", "value": "v"}}]'
        )
    if given and all(one is None or isinstance(one, str) for one in given):
        return _flat_headers(given)
    return [_header(one) for one in given]


def _flat_headers(given: list[Any]) -> Headers:
    """Read kcat's headers: names and values in turn."""
    if len(given) % 2 or None in given[::2]:
        raise ValueError("headers as a plain list are name, value, name, value, and one is missing")
    return [
        (name, _text("a header's value", value))
        for name, value in zip(given[::2], given[1::2], strict=True)
    ]


def _header(one: object) -> tuple[str, bytes | None]:
    if not isinstance(one, dict):
        raise ValueError(f'a header is {_kind(one)}; write {{"name": "n", "value": "v"}}')
    for field in one:
        if field not in ("name", "key", "value", "value_base64"):
            raise ValueError(f"unknown field {field!r} of a header; use name and value")
    names = [one[field] for field in ("name", "key") if field in one]
    if len(names) != 1 or not isinstance(names[0], str):
        raise ValueError("a header needs one name, which is text")
    if "value" not in one and "value_base64" not in one:
        raise ValueError(f"header {names[0]!r} needs a value or value_base64")
    return names[0], _content("value", one)


def _timestamp(found: dict[str, Any]) -> int | None:
    if "timestamp" in found and "ts" in found:
        raise ValueError("timestamp and ts exclude each other")
    if "ts" in found:
        time_ms = _whole("ts", found["ts"], NO_TIME)
        return None if time_ms == NO_TIME else time_ms
    # -1 is what `tarry consume` prints for a record without a time.
    time_ms = _whole("timestamp", found.get("timestamp"), NO_TIME)
    return None if time_ms == NO_TIME else time_ms


def _topic(given: object) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise ValueError(f"topic is {_kind(given)} and has to be text")


def _whole(name: str, given: object, minimum: int, maximum: int = OFFSET_MAX) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError(f"{name} is {_kind(given)} and has to be a whole number")
    if not minimum <= given <= maximum:
        raise ValueError(f"{name} {given} is out of range")
    return given


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    if value is None:
        return "null"
    return kinds.get(type(value), "a number")
