"""JSON Schema to types: what a column holds, and what checks a value of it.

What the schema demands is checked on each value or refused here: nothing of it is passed over but
notes (title, description, default, formats other than date-time and date).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import pyarrow as pa

from tarry.spark.options import INT64_MAX
from tarry.spark.steps.columns import check_names
from tarry.spark.steps.formats.json_columns import MEMBER, object_type
from tarry.spark.steps.refused import StepRefused

INT64_MIN: Final = -(2**63)

# Notes for readers; `format` only where it is neither date-time nor date.
NOTES: Final = frozenset(
    [
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "contentEncoding",
        "contentMediaType",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    ]
)
CHOICES: Final = frozenset(["enum", "const"])
BOUNDS: Final = frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])

# Keywords of each type that are checked.
CHECKED: Final = {
    "object": frozenset(["properties", "required", "additionalProperties"]),
    "array": frozenset(["items", "minItems", "maxItems"]),
    "string": frozenset(["minLength", "maxLength", "pattern"]) | CHOICES,
    "integer": BOUNDS | CHOICES | {"multipleOf"},
    "number": BOUNDS,
    "boolean": frozenset[str](),
}

NULL: Final = "null"


class JsonType(NamedTuple):
    """Type of a value: what msgspec checks it by, and the type of its column."""

    checked: Any
    column: pa.DataType


def read_schema(schema: object) -> JsonType:
    """Return the types of records.  Raises StepRefused for what cannot be columns."""
    if not isinstance(schema, dict):
        raise StepRefused("the JSON Schema must be an object that describes the records' fields")
    found = SchemaReader(schema).read(schema, "#", ())
    if not pa.types.is_struct(found.column) or not isinstance(found.checked, type):
        raise StepRefused(
            'the JSON Schema must be of type "object" with properties: each becomes a column'
        )
    check_names(field.name for field in found.column)
    return found


class SchemaReader:
    """Reader of one document; `place` is where in it, as a JSON pointer."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root

    def read(self, given: object, place: str, within: tuple[str, ...]) -> JsonType:
        """Read the type of a value; `within` are the references that led here."""
        if not isinstance(given, dict):
            raise _refusal(place, "says nothing of a type, so it has no column: give it a type")
        node, is_nullable = _without_null(given, place)
        if "$ref" in node:
            found = self._follow(node, place, within)
        else:
            kind = _kind_of(node, place)
            _check_keywords(node, kind, place)
            found = self._of_kind(kind, node, place, within)
        return JsonType(found.checked | None, found.column) if is_nullable else found

    def _follow(self, node: dict[str, Any], place: str, within: tuple[str, ...]) -> JsonType:
        name = str(node["$ref"])
        beside = sorted(set(node) - NOTES - {"$ref"})
        if beside:
            raise _refusal(place, f"has {', '.join(beside)} beside $ref: move it behind the $ref")
        if name in within:
            raise _refusal(
                place, f"holds itself by {name}: a column cannot be as deep as its value"
            )
        if not name.startswith("#/"):
            raise _refusal(
                place, f"names {name:.80}: only places in the same file, #/..., are read"
            )
        target: Any = self.root
        for part in name[2:].split("/"):
            step = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or step not in target:
                raise _refusal(place, f"names {name:.80}, which is not in the file")
            target = target[step]
        return self.read(target, name, (*within, name))

    def _of_kind(
        self, kind: str, node: dict[str, Any], place: str, within: tuple[str, ...]
    ) -> JsonType:
        if kind == "object":
            return self._object(node, place, within)
        if kind == "array":
            return self._array(node, place, within)
        if CHOICES & node.keys():
            return _choice(kind, node, place)
        if kind == "string":
            return _string(node, place)
        if kind == "boolean":
            return JsonType(bool, pa.bool_())
        return _number(kind, node, place)

    def _array(self, node: dict[str, Any], place: str, within: tuple[str, ...]) -> JsonType:
        item = self.read(node.get("items"), f"{place}/items", within)
        limits = _limits(node, {"minItems": "min_length", "maxItems": "max_length"}, place)
        checked: Any = list[item.checked]  # type: ignore[name-defined]
        if limits:
            checked = Annotated[checked, msgspec.Meta(**limits)]
        return JsonType(checked, pa.list_(item.column))

    def _object(self, node: dict[str, Any], place: str, within: tuple[str, ...]) -> JsonType:
        properties = node.get("properties") or {}
        more = node.get("additionalProperties", True)
        required = node.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise _refusal(place, "must have an object as properties and a list as required")
        if not properties:
            if not isinstance(more, dict) or required:
                raise _refusal(place, "has no properties, so it has no columns: name them")
            value = self.read(more, f"{place}/additionalProperties", within)
            checked = dict[str, value.checked]  # type: ignore[name-defined]
            return JsonType(checked, pa.map_(pa.string(), value.column))
        if isinstance(more, dict):
            raise _refusal(place, "has both properties and a schema of additionalProperties")
        unknown = [name for name in required if name not in properties]
        if unknown:
            raise _refusal(place, f"requires {unknown[0]!r:.60}, which its properties lack: add it")
        check_names(properties)
        return self._struct(properties, required, place, within, is_closed=more is False)

    def _struct(
        self,
        properties: Mapping[str, object],
        required: list[str],
        place: str,
        within: tuple[str, ...],
        *,
        is_closed: bool,
    ) -> JsonType:
        columns: list[pa.Field] = []
        members: list[Any] = []
        names: dict[str, str] = {}
        for number, (name, given) in enumerate(properties.items()):
            found = self.read(given, f"{place}/properties/{name}", within)
            columns.append(pa.field(name, found.column))
            names[MEMBER.format(number)] = name
            member = (MEMBER.format(number), found.checked)
            members.append(member if name in required else (*member, None))
        checked = object_type(members, names, is_closed=is_closed)
        return JsonType(checked, pa.struct(columns))


def _refusal(place: str, flaw: str) -> StepRefused:
    where = "the JSON Schema" if place == "#" else f"{place} of the JSON Schema"
    return StepRefused(f"{where} {flaw}")


def _without_null(given: dict[str, Any], place: str) -> tuple[dict[str, Any], bool]:
    """Return the schema of what is not null, and whether null is taken."""
    node = dict(given)
    for keyword in ("anyOf", "oneOf"):
        if keyword not in node:
            continue
        choices = node.pop(keyword)
        others = [one for one in choices if one != {"type": NULL}]
        if len(others) != 1 or len(others) == len(choices) or set(node) - NOTES:
            raise _refusal(
                place,
                f"uses {keyword}: a column has one type, so only one beside null can be read",
            )
        return dict(others[0]) if isinstance(others[0], dict) else {}, True
    kinds = node.get("type")
    choices = node.get("enum")
    is_nullable = isinstance(kinds, list) and NULL in kinds
    if isinstance(kinds, list):
        left = [kind for kind in kinds if kind != NULL]
        if sorted(left) == ["integer", "number"]:
            left = ["number"]
        if len(left) != 1:
            raise _refusal(place, f"has the types {kinds}: a column has one, and null beside it")
        node["type"] = left[0]
    if isinstance(choices, list) and None in choices:
        node["enum"] = [one for one in choices if one is not None]
        is_nullable = is_nullable or kinds is None
    elif is_nullable and CHOICES & node.keys():
        # Null is of the type and not among the choices.
        is_nullable = False
    return node, is_nullable


def _kind_of(node: dict[str, Any], place: str) -> str:
    kind = node.get("type")
    if kind is None:
        if "properties" in node:
            return "object"
        if "items" in node:
            return "array"
        choices = _choices_of(node, place) if CHOICES & node.keys() else []
        if choices and all(isinstance(one, str) for one in choices):
            return "string"
        if choices and all(type(one) is int for one in choices):
            return "integer"
        raise _refusal(place, "says nothing of a type, so it has no column: give it a type")
    if kind not in CHECKED:
        taken = ", ".join(CHECKED)
        raise _refusal(
            place, f"has the type {kind!r:.60}, which no column has: take one of {taken}"
        )
    return str(kind)


def _check_keywords(node: dict[str, Any], kind: str, place: str) -> None:
    """Refuse what would not be checked."""
    for keyword in node:
        if keyword in NOTES or keyword == "type" or keyword in CHECKED[kind]:
            continue
        raise _refusal(
            place,
            f"uses {keyword!r:.60}, which is not checked for the type {kind}: leave it out, or "
            "write a rule of the step check instead",
        )


def _limits(node: dict[str, Any], names: Mapping[str, str], place: str) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for keyword, name in names.items():
        if keyword in node:
            if type(node[keyword]) is not int or node[keyword] < 0:
                raise _refusal(place, f"has {keyword}={node[keyword]!r:.40}, which is no count")
            limits[name] = node[keyword]
    return limits


def _choices_of(node: dict[str, Any], place: str) -> list[Any]:
    choices = node.get("enum", [node.get("const")])
    if "enum" in node and "const" in node:
        raise _refusal(place, "has both enum and const: leave one out")
    if not isinstance(choices, list) or not choices:
        raise _refusal(place, "has an enum without values: name them")
    return choices


def _choice(kind: str, node: dict[str, Any], place: str) -> JsonType:
    choices = _choices_of(node, place)
    wanted, column = (str, pa.string()) if kind == "string" else (int, pa.int64())
    beside = sorted(set(node) - NOTES - CHOICES - {"type"})
    is_time = node.get("format") in ("date-time", "date")
    if beside or is_time:
        raise _refusal(place, f"has {beside[0] if beside else 'a format'} beside enum or const")
    if any(type(one) is not wanted for one in choices):
        raise _refusal(place, f"has choices that are not of its type {kind}")
    if wanted is int and not all(INT64_MIN <= one <= INT64_MAX for one in choices):
        raise _refusal(place, "has choices that do not fit into 64 bits")
    return JsonType(Literal[tuple(dict.fromkeys(choices))], column)


def _string(node: dict[str, Any], place: str) -> JsonType:
    limits = _limits(node, {"minLength": "min_length", "maxLength": "max_length"}, place)
    if "pattern" in node:
        limits["pattern"] = node["pattern"]
    kind = node.get("format")
    if kind in ("date-time", "date"):
        if limits:
            raise _refusal(place, f"has {', '.join(limits)} beside the format {kind}")
        if kind == "date":
            return JsonType(date, pa.date32())
        # RFC 3339 has an offset always; without one a time is nobody's.
        return JsonType(Annotated[datetime, msgspec.Meta(tz=True)], pa.timestamp("us", "UTC"))
    try:
        return JsonType(Annotated[str, msgspec.Meta(**limits)] if limits else str, pa.string())
    except Exception as flaw:
        raise _refusal(place, f"has the pattern {node['pattern']!r:.60}: {flaw}") from None


def _number(kind: str, node: dict[str, Any], place: str) -> JsonType:
    for keyword in sorted((BOUNDS | {"multipleOf"}) & node.keys()):
        if type(node[keyword]) not in (int, float):
            raise _refusal(place, f"has {keyword}={node[keyword]!r:.40}, which is no number")
    if kind == "integer":
        return _integer(node, place)
    limits: dict[str, Any] = {}
    least, above = node.get("minimum"), node.get("exclusiveMinimum")
    most, below = node.get("maximum"), node.get("exclusiveMaximum")
    if above is not None and (least is None or above >= least):
        limits["gt"] = above
    elif least is not None:
        limits["ge"] = least
    if below is not None and (most is None or below <= most):
        limits["lt"] = below
    elif most is not None:
        limits["le"] = most
    return JsonType(Annotated[float, msgspec.Meta(**limits)] if limits else float, pa.float64())


def _integer(node: dict[str, Any], place: str) -> JsonType:
    least, most = INT64_MIN, INT64_MAX
    if "minimum" in node:
        least = max(least, math.ceil(node["minimum"]))
    if "exclusiveMinimum" in node:
        least = max(least, math.floor(node["exclusiveMinimum"]) + 1)
    if "maximum" in node:
        most = min(most, math.floor(node["maximum"]))
    if "exclusiveMaximum" in node:
        most = min(most, math.ceil(node["exclusiveMaximum"]) - 1)
    if least > most:
        raise _refusal(place, f"takes no number at all: from {least} to {most}")
    limits: dict[str, Any] = {"ge": least, "le": most}
    if "multipleOf" in node:
        if type(node["multipleOf"]) is not int or node["multipleOf"] <= 0:
            raise _refusal(place, "has a multipleOf that is no whole number above 0")
        limits["multiple_of"] = node["multipleOf"]
    return JsonType(Annotated[int, msgspec.Meta(**limits)], pa.int64())
