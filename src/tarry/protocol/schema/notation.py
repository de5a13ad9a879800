"""Notation of `*.schema` files: the fields of a message, and the versions that have them.

One file describes one API:

    api 0 Produce 3-13 flexible 9+

    request
        transactional_id  string? = null
        acks              i16
        topic_data        [TopicProduceData]
            name    string  3-12  key ignorable
            ...

A line is a name, a type, and then in any order: versions (`9+`, `3-12`, `8`; none means all that
the struct around it has), `tag 0`, `key`, `ignorable`; last `= default` (else 0, false, "" or
empty, nullable or not, as in Kafka; only records begin as null).  Types: bool i8 i16 i32 i64 u16
u32 f64 uuid string bytes records, a struct's name, `[T]` for an array.  `?` after a type makes it
nullable, `?10+` only from that version.  The fields of a struct stand below the field that names
it first, one step deeper; or before that in a block of its own, `struct Cursor`.  `#` begins a
comment.  Names are Kafka's in snake case; classes keep Kafka's names, but where a request and its
response give one name to different structs, one of them gets a longer name.

The file is the source of `tools/generate_messages.py`; nothing reads it while a broker runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

VERSION_LAST: Final = 32767

INTEGERS: Final = frozenset({"i8", "i16", "i32", "i64", "u16", "u32"})
SCALARS: Final = INTEGERS | {"bool", "f64", "uuid", "string", "bytes", "records"}

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_STRUCT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_TYPE: Final = re.compile(r"(\[?)([A-Za-z0-9]+)(\]?)(\?(\d+\+)?)?")
_VERSIONS: Final = re.compile(r"(\d+)(\+|-(\d+))?")
_STEP: Final = 4


class InvalidSchema(Exception):
    """Line of a schema file that violates the notation."""


@dataclass(frozen=True, order=True)
class Versions:
    """Versions from `first` to `last`, both included; `last` is VERSION_LAST for an open end."""

    first: int
    last: int

    def within(self, other: Versions) -> Versions:
        return Versions(max(self.first, other.first), min(self.last, other.last))

    def covers(self, other: Versions) -> bool:
        return self.first <= other.first and other.last <= self.last

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(frozen=True)
class Field:
    """Field of a struct; `versions` and `nullable` lie within the API's versions."""

    name: str
    type_name: str
    is_array: bool
    versions: Versions
    nullable: Versions | None
    default: str | None
    tag: int | None
    is_key: bool
    is_ignorable: bool

    @property
    def is_struct(self) -> bool:
        return self.type_name not in SCALARS


@dataclass
class Struct:
    """Fields under a name; `versions` are the versions of the field that names the struct."""

    name: str
    versions: Versions
    fields: list[Field] = field(default_factory=list)


@dataclass
class ApiSchema:
    """Schema of an API; its request and response are `structs["<name>Request"]` and
    `...Response`.
    """

    key: int
    name: str
    versions: Versions
    flexible: Versions | None
    structs: dict[str, Struct] = field(default_factory=dict)

    @property
    def request(self) -> Struct:
        return self.structs[f"{self.name}Request"]

    @property
    def response(self) -> Struct:
        return self.structs[f"{self.name}Response"]

    @property
    def snake_name(self) -> str:
        return snake_case(self.name)


def snake_case(name: str) -> str:
    """Convert a name such as `TimeoutMs` to `timeout_ms`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def parse_versions(text: str) -> Versions:
    matched = _VERSIONS.fullmatch(text)
    if matched is None:
        raise InvalidSchema(f"{text!r} is no range of versions")
    first = int(matched[1])
    if matched[2] is None:
        return Versions(first, first)
    return Versions(first, VERSION_LAST if matched[2] == "+" else int(matched[3]))


def parse_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidSchema(f"{text!r} is no number") from None


def parse(text: str) -> ApiSchema:
    """Parse the text of one schema file into the API that it describes."""
    lines = [line.split("#")[0].rstrip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise InvalidSchema("empty")
    api = _parse_head(lines[0])
    # Structs that take the fields of deeper lines, by depth, each with the versions that have it.
    around: list[tuple[Struct, Versions]] = []
    for line in lines[1:]:
        try:
            _parse_line(api, line, around)
        except InvalidSchema as error:
            raise InvalidSchema(f"{line.strip()!r}: {error}") from None
    for name in (f"{api.name}Request", f"{api.name}Response"):
        if name not in api.structs:
            raise InvalidSchema(f"{name} is missing")
    for struct in api.structs.values():
        # Only a message may be empty: another struct without fields was misspelt or left out.
        if not struct.fields and struct not in (api.request, api.response):
            raise InvalidSchema(f"{struct.name} has no fields")
    return api


def _parse_line(api: ApiSchema, line: str, around: list[tuple[Struct, Versions]]) -> None:
    depth, rest = divmod(len(line) - len(line.lstrip()), _STEP)
    if rest != 0 or depth > len(around):
        raise InvalidSchema("wrong indentation")
    del around[depth:]
    if depth == 0:
        around.append((_open_struct(api, _block_name(api, line), api.versions), api.versions))
        return
    struct, versions = around[-1]
    parsed = _parse_field(versions, line.split())
    struct.fields.append(parsed)
    if not parsed.is_struct:
        return
    if parsed.type_name not in api.structs:
        around.append((_open_struct(api, parsed.type_name, parsed.versions), parsed.versions))
    elif not api.structs[parsed.type_name].versions.covers(parsed.versions):
        raise InvalidSchema(f"{parsed.type_name} was first named by a field of fewer versions")


def load(name: str) -> ApiSchema:
    """Load one API by its name, such as "OffsetCommit"."""
    path = Path(__file__).with_name(f"{snake_case(name)}.schema")
    return parse(path.read_text(encoding="utf-8"))


def load_all() -> list[ApiSchema]:
    """Load every API of this folder, by key."""
    apis = []
    for path in sorted(Path(__file__).parent.glob("*.schema")):
        try:
            api = parse(path.read_text(encoding="utf-8"))
        except InvalidSchema as error:
            raise InvalidSchema(f"{path.name}: {error}") from None
        if path.stem != api.snake_name:
            raise InvalidSchema(f"{path.name} describes {api.name}")
        apis.append(api)
    return sorted(apis, key=lambda api: api.key)


def _parse_head(line: str) -> ApiSchema:
    words = line.split()
    if words[0] != "api" or len(words) not in (4, 6) or words[4:5] not in ([], ["flexible"]):
        raise InvalidSchema("wanted: api KEY Name VERSIONS [flexible N+]")
    versions = parse_versions(words[3])
    flexible = parse_versions(words[5]).within(versions) if len(words) == 6 else None
    return ApiSchema(parse_number(words[1]), words[2], versions, flexible)


def _block_name(api: ApiSchema, line: str) -> str:
    if line == "request":
        return f"{api.name}Request"
    if line == "response":
        return f"{api.name}Response"
    words = line.split()
    if len(words) != 2 or words[0] != "struct" or _STRUCT_NAME.fullmatch(words[1]) is None:
        raise InvalidSchema("wanted: request, response or struct Name")
    return words[1]


def _open_struct(api: ApiSchema, name: str, versions: Versions) -> Struct:
    if name in api.structs:
        raise InvalidSchema(f"{name} is described twice")
    struct = Struct(name, versions)
    api.structs[name] = struct
    return struct


def _parse_field(around: Versions, words: list[str]) -> Field:
    words, default = _split_default(words)
    if len(words) < 2 or _NAME.fullmatch(words[0]) is None:
        raise InvalidSchema("wanted: name type ...")
    matched = _TYPE.fullmatch(words[1])
    if matched is None or bool(matched[1]) != bool(matched[3]):
        raise InvalidSchema(f"{words[1]!r} is no type")
    type_name = matched[2]
    if type_name not in SCALARS and _STRUCT_NAME.fullmatch(type_name) is None:
        raise InvalidSchema(f"{type_name!r} is no type")
    if type_name in INTEGERS and default not in (None, "null"):
        parse_number(default or "")
    flags, tag = _split_tag(words[2:])
    versions = around
    for flag in flags:
        if flag not in ("key", "ignorable"):
            versions = parse_versions(flag).within(around)
    if versions.first > versions.last:
        raise InvalidSchema(f"{words[0]} is in no version")
    nullable: Versions | None = None
    if matched[4] is not None:
        nullable = (parse_versions(matched[5]) if matched[5] else versions).within(versions)
        if nullable.first > nullable.last:
            raise InvalidSchema(f"{words[0]} is never nullable")
    return Field(
        name=words[0],
        type_name=type_name,
        is_array=bool(matched[1]),
        versions=versions,
        nullable=nullable,
        default=default,
        tag=tag,
        is_key="key" in flags,
        is_ignorable="ignorable" in flags,
    )


def _split_default(words: list[str]) -> tuple[list[str], str | None]:
    if "=" not in words:
        return words, None
    at = words.index("=")
    if len(words) != at + 2:
        raise InvalidSchema("one word must follow '='")
    return words[:at], words[at + 1]


def _split_tag(flags: list[str]) -> tuple[list[str], int | None]:
    if "tag" not in flags:
        return flags, None
    at = flags.index("tag")
    if at + 1 == len(flags):
        raise InvalidSchema("a number must follow 'tag'")
    return flags[:at] + flags[at + 2 :], parse_number(flags[at + 1])
