"""Python source of a message module from its schema; `generate_messages.py` writes the files.

The generated code is specialised field by field: what a version decides is decided by `if version
>= N` around as many fields as possible, and everything else is straight calls of the reader and
the writer, which mypyc turns into C calls.  Decoders read into locals in wire order and build the
object once.
"""

from __future__ import annotations

from typing import Final

from message_facts import (
    attribute_type,
    by_flexible,
    condition,
    default_value,
    differs_from_default,
    element_size_min,
    is_absent_when_none,
    is_nullable,
    local_name,
    python_type,
    runs,
    struct_versions,
    within_flexible,
)
from tarry.protocol.schema.notation import ApiSchema, Field, Struct, Versions, snake_case

NOTICE: Final = "Written by tools/generate_messages.py from protocol/schema; change it there."


class Code:
    """Lines of Python at a depth."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, *lines: str) -> None:
        for line in lines:
            self.lines.append("    " * self.depth + line if line else "")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


# --- Reading


def read_name(item: Field, *, compact: bool) -> str:
    """Return the reader's or writer's method for one value that is no struct."""
    name = {"bool": "boolean", "bytes": "bytes_"}.get(item.type_name, item.type_name)
    if item.type_name not in ("string", "bytes", "records"):
        return name
    nullable = (is_nullable(item) and not item.is_array) or item.type_name == "records"
    if nullable:
        name = f"nullable_{name.rstrip('_')}"
    elif item.type_name == "bytes" and compact:
        name = "bytes"
    return f"compact_{name}" if compact else name


def read_scalar(api: ApiSchema, item: Field, versions: Versions) -> str:
    def call(compact: bool) -> str:
        name = read_name(item, compact=compact)
        return f"reader.{name.replace('records', 'window')}()"

    return by_flexible(api, versions, call(True), call(False))


def read_field(code: Code, api: ApiSchema, item: Field, versions: Versions) -> None:
    """Statements that set the local variable of one field."""
    null_refused = f'raise MalformedData("{item.name} must not be null")'
    if item.is_array:
        read_array(code, api, item, versions)
    elif item.is_struct:
        call = f"{local_name(item)} = _decode_{snake_case(item.type_name)}(reader, version)"
        if not is_nullable(item) or item.tag is not None:
            code.add(call)
        else:
            code.add("if reader.i8() >= 0:", f"    {call}")
    else:
        code.add(f"{local_name(item)} = {read_scalar(api, item, versions)}")
        if item.type_name == "records" and not is_nullable(item):
            code.add(f"if {local_name(item)} is None:", f"    {null_refused}")
        add_null_check(code, item, versions, f"{local_name(item)} is None", null_refused)


def add_null_check(code: Code, item: Field, versions: Versions, is_null: str, refusal: str) -> None:
    """Refuse null in the versions in which a nullable field is not yet."""
    if item.nullable is None or item.nullable.first <= versions.first:
        return
    code.add(f"if {is_null} and version < {item.nullable.first}:", f"    {refusal}")


def read_array(code: Code, api: ApiSchema, item: Field, versions: Versions) -> None:
    local = local_name(item)
    null_refused = f'raise MalformedData("{item.name} must not be null")'
    compact = f"reader.compact_array_length({element_size_min(api, item, flexible=True)})"
    plain = f"reader.array_length({element_size_min(api, item, flexible=False)})"
    code.add(f"count = {by_flexible(api, versions, compact, plain)}")
    if item.is_struct:
        element = f"_decode_{snake_case(item.type_name)}(reader, version)"
    else:
        element = read_scalar(api, item, versions)
    if not is_nullable(item):
        code.add("if count < 0:", f"    {null_refused}", "for _ in range(count):")
        code.add(f"    {local}.append({element})")
        return
    add_null_check(code, item, versions, "count < 0", null_refused)
    code.add(f"{local} = None", "if count >= 0:", f"    {local} = []")
    code.add("    for _ in range(count):", f"        {local}.append({element})")


def local_declaration(item: Field) -> str:
    default = default_value(item)
    annotation = attribute_type(item)
    if python_type(item) == "int" and not item.is_array:
        annotation = "i64"
    if item.type_name == "records":
        annotation = "Window | None"
    return f"{local_name(item)}: {annotation} = {default}"


def is_declared_first(api: ApiSchema, struct: Struct, item: Field) -> bool:
    """Return true if a field's local needs its default before it is read."""
    optional = item.versions.within(struct_versions(api, struct)) != struct_versions(api, struct)
    nullable_struct = item.is_struct and is_nullable(item)
    return optional or item.is_array or nullable_struct or item.tag is not None


def add_decoder(code: Code, api: ApiSchema, struct: Struct) -> None:
    around = struct_versions(api, struct)
    name = snake_case(struct.name)
    public = struct in (api.request, api.response)
    code.add("", "")
    code.add(
        f"def {'' if public else '_'}decode_{name}(reader: Reader, version: i64) -> {struct.name}:"
    )
    code.depth += 1
    body = Code()
    body.depth = code.depth
    for item in struct.fields:
        if is_declared_first(api, struct, item):
            body.add(local_declaration(item))
    for run in runs([item for item in struct.fields if item.tag is None]):
        versions = run[0].versions.within(around)
        when = condition(versions, around)
        if when:
            body.add(f"if {when}:")
            body.depth += 1
        for item in run:
            read_field(body, api, item, versions)
        if when:
            body.depth -= 1
    add_tagged_reading(body, api, struct, around)
    add_flexible_local(code, api, around, body)
    arguments = ", ".join(local_name(item) for item in struct.fields)
    code.add(f"return {struct.name}({arguments})")
    code.depth -= 1


def add_flexible_local(code: Code, api: ApiSchema, around: Versions, body: Code) -> None:
    if within_flexible(api, around) == "mixed" and any("flexible" in x for x in body.lines):
        assert api.flexible is not None
        code.add(f"flexible = version >= {api.flexible.first}")
    code.lines += body.lines


def add_tagged_reading(code: Code, api: ApiSchema, struct: Struct, around: Versions) -> None:
    kind = within_flexible(api, around)
    if kind == "never":
        return
    if kind == "mixed":
        code.add("if flexible:")
        code.depth += 1
    tagged = [item for item in struct.fields if item.tag is not None]
    if not tagged:
        code.add("reader.skip_tagged_fields()")
    else:
        code.add("tag: i64 = -1", "for _ in range(reader.tagged_field_count()):")
        code.depth += 1
        code.add("tag = reader.tag_after(tag)", "end = reader.tagged_field_end()")
        for number, item in enumerate(tagged):
            when = condition(item.versions.within(around), flexible_part(api, around))
            code.add(
                f"{'if' if number == 0 else 'elif'} tag == {item.tag}"
                + (f" and {when}:" if when else ":")
            )
            code.depth += 1
            read_field(code, api, item, item.versions.within(around))
            code.add("reader.expect_position(end)")
            code.depth -= 1
        code.add("else:", "    reader.position = end")
        code.depth -= 1
    if kind == "mixed":
        code.depth -= 1


def flexible_part(api: ApiSchema, around: Versions) -> Versions:
    assert api.flexible is not None
    return around.within(api.flexible)


# --- Writing


def write_field(code: Code, api: ApiSchema, item: Field, versions: Versions, writer: str) -> None:
    value = f"self.{item.name}"
    refusal = f'raise ValueError("{item.name} must not be None in this version")'
    add_null_check(code, item, versions, f"{value} is None", refusal)
    if item.is_array:
        write_array(code, api, item, versions, writer)
    elif item.is_struct and (is_nullable(item) or is_absent_when_none(item)):
        local = f"{item.name}_"
        code.add(f"{local} = {value}")
        if item.tag is not None:
            code.add(f"if {local} is not None:", f"    {local}.encode({writer}, version)")
        else:
            code.add(f"if {local} is None:", f"    {writer}.i8(-1)", "else:")
            code.add(f"    {writer}.i8(1)", f"    {local}.encode({writer}, version)")
    elif item.is_struct:
        code.add(f"{value}.encode({writer}, version)")
    else:
        write_by_flexible(code, api, item, versions, (writer, value))


def write_by_flexible(
    code: Code, api: ApiSchema, item: Field, versions: Versions, names: tuple[str, str]
) -> None:
    writer, value = names
    compact = f"{writer}.{read_name(item, compact=True)}({value})"
    plain = f"{writer}.{read_name(item, compact=False)}({value})"
    add_by_flexible(code, api, versions, compact, plain)


def add_by_flexible(
    code: Code, api: ApiSchema, versions: Versions, compact: str, plain: str
) -> None:
    if compact != plain and within_flexible(api, versions) == "mixed":
        code.add("if flexible:", f"    {compact}", "else:", f"    {plain}")
    else:
        code.add(by_flexible(api, versions, compact, plain))


def write_array(code: Code, api: ApiSchema, item: Field, versions: Versions, writer: str) -> None:
    def add_length(count: str) -> None:
        compact = f"{writer}.compact_array_length({count})"
        plain = f"{writer}.array_length({count})"
        add_by_flexible(code, api, versions, compact, plain)

    local = f"{item.name}_"
    code.add(f"{local} = self.{item.name}")
    if is_nullable(item):
        code.add(f"if {local} is None:")
        code.depth += 1
        add_length("-1")
        code.depth -= 1
        code.add("else:")
        code.depth += 1
    add_length(f"len({local})")
    element = f"{item.name}_element"
    code.add(f"for {element} in {local}:")
    code.depth += 1
    if item.is_struct:
        code.add(f"{element}.encode({writer}, version)")
    else:
        write_by_flexible(code, api, item, versions, (writer, element))
    code.depth -= 2 if is_nullable(item) else 1


def add_refusals(code: Code, run: list[Field]) -> None:
    """Add the refusal of values that this version cannot carry, except of ignorable fields."""
    for item in run:
        if item.is_ignorable:
            continue
        code.add(f"elif {differs_from_default(item)}:")
        code.add(f'    raise ValueError("this version has no {item.name}")')


def add_encoder(code: Code, api: ApiSchema, struct: Struct) -> None:
    around = struct_versions(api, struct)
    code.add("", "def encode(self, writer: Writer, version: i64) -> None:")
    code.depth += 1
    body = Code()
    body.depth = code.depth
    for run in runs([item for item in struct.fields if item.tag is None]):
        versions = run[0].versions.within(around)
        when = condition(versions, around)
        if when:
            body.add(f"if {when}:")
            body.depth += 1
        for item in run:
            write_field(body, api, item, versions, "writer")
        if when:
            body.depth -= 1
        if when:
            add_refusals(body, run)
    add_tagged_writing(body, api, struct, around)
    add_flexible_local(code, api, around, body)
    code.depth -= 1
    if any(item.tag is not None for item in struct.fields):
        add_tagged_encoder(code, api, struct, around)


def add_tagged_writing(code: Code, api: ApiSchema, struct: Struct, around: Versions) -> None:
    kind = within_flexible(api, around)
    tagged = [item for item in struct.fields if item.tag is not None]
    if kind == "never":
        return
    if tagged:
        code.add("tag_count: i64 = 0")
    for item in tagged:
        when = condition(item.versions.within(around), around)
        differs = differs_from_default(item)
        if when and item.is_ignorable:
            code.add(f"if {when} and {differs}:", "    tag_count += 1")
            continue
        code.add(f"if {differs}:")
        if when:
            refused = Versions(around.first, item.versions.first - 1)
            code.add(f"    if {condition(refused, around)}:")
            code.add(f'        raise ValueError("this version has no {item.name}")')
        code.add("    tag_count += 1")
    if kind == "mixed":
        code.add("if flexible:")
        code.depth += 1
    code.add(f"writer.unsigned_varint({'tag_count' if tagged else '0'})")
    if tagged:
        code.add("if tag_count > 0:", "    self._encode_tagged_fields(writer, version)")
    if kind == "mixed":
        code.depth -= 1


def add_tagged_encoder(code: Code, api: ApiSchema, struct: Struct, around: Versions) -> None:
    code.add("", "def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:")
    code.depth += 1
    tagged = sorted(
        (item for item in struct.fields if item.tag is not None), key=lambda item: item.tag or 0
    )
    for item in tagged:
        when = condition(item.versions.within(around), flexible_part(api, around))
        present = differs_from_default(item)
        code.add(f"if {when} and {present}:" if when else f"if {present}:")
        code.depth += 1
        code.add("content = Writer()")
        write_field(code, api, item, item.versions.within(around), "content")
        code.add(f"writer.tagged_field({item.tag}, content)")
        code.depth -= 1
    code.depth -= 1


# --- Classes and modules


def add_class(code: Code, api: ApiSchema, struct: Struct) -> None:
    public = struct in (api.request, api.response)
    code.add("", "")
    code.add(f"class {struct.name}(Message):" if public else f"class {struct.name}:")
    code.depth += 1
    code.add("def __init__(", "    self,")
    for item in struct.fields:
        default, annotation = default_value(item), attribute_type(item)
        if default == "[]":
            # An empty tuple stands for "not given", since null may be a value of its own.
            annotation = f"{python_type(item)} | tuple[()]"
            default, annotation = "()", f"{annotation} | None" if is_nullable(item) else annotation
        elif default.endswith("()"):
            default, annotation = "None", f"{annotation} | None"
        code.add(f"    {item.name}: {annotation} = {default},")
    code.add(") -> None:")
    code.depth += 1
    for item in struct.fields:
        default, annotation = default_value(item), attribute_type(item)
        value = item.name
        if default == "[]":
            value = f"[] if isinstance({item.name}, tuple) else {item.name}"
        elif default.endswith("()"):
            value = f"{default} if {item.name} is None else {item.name}"
        code.add(f"self.{item.name}: {annotation} = {value}")
    if not struct.fields:
        code.add("pass")
    code.depth -= 1
    add_encoder(code, api, struct)
    code.depth -= 1


def in_order(api: ApiSchema) -> list[Struct]:
    """Structs before those that use them."""
    ordered: list[Struct] = []

    def visit(struct: Struct) -> None:
        for item in struct.fields:
            if item.is_struct and api.structs[item.type_name] not in ordered:
                visit(api.structs[item.type_name])
        if struct not in ordered:
            ordered.append(struct)

    visit(api.request)
    visit(api.response)
    return ordered


def message_module(api: ApiSchema) -> str:
    code = Code()
    for struct in in_order(api):
        add_class(code, api, struct)
        add_decoder(code, api, struct)
    body = code.text()
    head = Code()
    flexible = f", flexible from {api.flexible.first}" if api.flexible else ""
    head.add(
        f'"""{api.name}, API key {api.key}: versions {api.versions.first} to '
        f"{api.versions.last}{flexible}.",
        "",
        NOTICE,
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from mypy_extensions import i64",
        "",
    )
    names = ["ZERO_UUID", "Message"] if "ZERO_UUID" in body else ["Message"]
    head.add(f"from tarry.protocol.message import {', '.join(names)}")
    names = [name for name in ("MalformedData", "Reader", "Window") if name in body]
    head.add(f"from tarry.wire.reader import {', '.join(names)}")
    names = [name for name in ("ChunkList", "Writer") if name in body]
    head.add(f"from tarry.wire.writer import {', '.join(names)}")
    return head.text() + body
