"""Facts from which the code of a message follows: types, defaults, sizes, version conditions."""

from __future__ import annotations

from typing import Final

from tarry.protocol.schema.notation import ApiSchema, Field, Struct, Versions

FIXED_SIZES: Final = {
    "bool": 1,
    "i8": 1,
    "i16": 2,
    "u16": 2,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "f64": 8,
    "uuid": 16,
}
PYTHON_TYPES: Final = {
    "bool": "bool",
    "f64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "Window | ChunkList",
}

# Names that a decoder needs for itself: a field of that name gets another local.
DECODER_NAMES: Final = ("count", "end", "flexible", "reader", "tag", "version")


def local_name(item: Field) -> str:
    """Return the name of a field's local variable in its decoder."""
    return f"{item.name}_" if item.name in DECODER_NAMES else item.name


def python_type(item: Field) -> str:
    name = item.type_name if item.is_struct else PYTHON_TYPES.get(item.type_name, "int")
    return f"list[{name}]" if item.is_array else name


def is_nullable(item: Field) -> bool:
    return item.nullable is not None


def attribute_type(item: Field) -> str:
    if is_nullable(item) or is_absent_when_none(item):
        return f"{python_type(item)} | None"
    return python_type(item)


def is_absent_when_none(item: Field) -> bool:
    """Return true for a tagged struct, None when it is not sent: cheaper than one with defaults."""
    return item.tag is not None and item.is_struct and not item.is_array


def default_value(item: Field) -> str:
    """Return the default of the attribute, as an expression."""
    if item.default == "null" or is_absent_when_none(item):
        return "None"
    if item.is_array:
        return "[]"
    if item.is_struct:
        return f"{item.type_name}()"
    if item.type_name == "records":
        return "None"
    if item.type_name == "bool":
        return "True" if item.default == "true" else "False"
    if item.type_name == "uuid":
        return "ZERO_UUID"
    if item.type_name == "string":
        return f'"{item.default or ""}"'
    if item.type_name == "bytes":
        return 'b""'
    return item.default or "0"


def differs_from_default(item: Field) -> str:
    """Return an expression that is true if the attribute does not hold its default."""
    value, default = f"self.{item.name}", default_value(item)
    if default == "None":
        return f"{value} is not None"
    if default == "[]":
        return f"({value} is None or len({value}) > 0)" if is_nullable(item) else f"{value}"
    if default in ("True", "False"):
        return value if default == "False" else f"not {value}"
    return f"{value} != {default}"


def element_size_min(
    api: ApiSchema, item: Field, *, flexible: bool, seen: tuple[str, ...] = ()
) -> int:
    """Return the fewest bytes of one element of an array, or one value, in any version."""
    if item.is_struct:
        struct = api.structs[item.type_name]
        sizes = [
            struct_size(api, struct, version, (*seen, item.type_name))
            for version in range(api.versions.first, api.versions.last + 1)
            if is_flexible(api, version) == flexible and version in item.versions
        ]
        return max(1, min(sizes, default=1))
    if item.type_name in FIXED_SIZES:
        return FIXED_SIZES[item.type_name]
    if flexible:
        return 1
    return 2 if item.type_name == "string" else 4


def struct_size(api: ApiSchema, struct: Struct, version: int, seen: tuple[str, ...]) -> int:
    flexible = is_flexible(api, version)
    size = 1 if flexible else 0
    for item in struct.fields:
        if version not in item.versions or item.tag is not None:
            continue
        if item.is_array:
            size += 1 if flexible else 4
        elif item.is_struct and (is_nullable(item) or item.type_name in seen):
            size += 1
        else:
            size += element_size_min(api, item, flexible=flexible, seen=seen)
    return size


def is_flexible(api: ApiSchema, version: int) -> bool:
    return api.flexible is not None and version in api.flexible


def condition(versions: Versions, around: Versions) -> str:
    """Return a condition for a version of `around` to be in `versions`; empty if it always is."""
    if versions.first <= around.first and versions.last >= around.last:
        return ""
    if versions.last >= around.last:
        return f"version >= {versions.first}"
    if versions.first <= around.first:
        return f"version <= {versions.last}"
    if versions.first == versions.last:
        return f"version == {versions.first}"
    return f"{versions.first} <= version <= {versions.last}"


def within_flexible(api: ApiSchema, versions: Versions) -> str:
    """Return whether these versions are flexible: "always", "never" or "mixed"."""
    if api.flexible is None or versions.last < api.flexible.first:
        return "never"
    return "always" if versions.first >= api.flexible.first else "mixed"


def by_flexible(api: ApiSchema, versions: Versions, compact: str, plain: str) -> str:
    """Return an expression for a field that these versions have."""
    if compact == plain:
        return compact
    kind = within_flexible(api, versions)
    if kind == "mixed":
        return f"{compact} if flexible else {plain}"
    return compact if kind == "always" else plain


def runs(fields: list[Field]) -> list[list[Field]]:
    """Neighbours with the same versions, to stand under one `if`."""
    grouped: list[list[Field]] = []
    for item in fields:
        if grouped and grouped[-1][0].versions == item.versions:
            grouped[-1].append(item)
        else:
            grouped.append([item])
    return grouped


def struct_versions(api: ApiSchema, struct: Struct) -> Versions:
    """Return the versions in which a struct can be on the wire."""
    found = [
        item.versions
        for other in api.structs.values()
        for item in other.fields
        if item.type_name == struct.name
    ]
    if not found:
        return api.versions
    return Versions(min(v.first for v in found), max(v.last for v in found))
