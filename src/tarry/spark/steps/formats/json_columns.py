"""Columns of what msgspec has decoded, field by field: no record becomes a dict on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final

import msgspec
import pyarrow as pa

from tarry.spark.steps.refused import StepRefused

# A field of JSON need not be a name of Python, so the members of structs are numbered.
MEMBER: Final = "f{}"


def object_type(
    members: Sequence[Any], names: Mapping[str, str], *, is_closed: bool = False
) -> type[msgspec.Struct]:
    """Return the type of an object by its members `f0`, `f1`, ... and their names in JSON.

    Raises StepRefused for names that msgspec cannot look for.
    """
    for name, count in Counter(names.values()).items():
        if count > 1:
            raise StepRefused(f"the schema has two fields {name!r:.60} in one place: leave one out")
    try:
        return msgspec.defstruct(
            "JsonObject",
            members,
            rename=names,
            kw_only=True,
            forbid_unknown_fields=is_closed,
            gc=False,
        )
    except ValueError as flaw:
        raise StepRefused(f"the schema has a field whose name cannot be read: {flaw}") from None


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of decoded values; None is null.

    The values of a struct are objects with the members `f0`, `f1`, ...; those of a list are lists,
    and those of a map dicts.  Raises what pyarrow raises for a value that the type cannot hold.
    """
    if pa.types.is_struct(kind):
        return _struct_column(values, kind)
    if pa.types.is_decimal(kind):
        return _decimal_column(values, kind)
    if pa.types.is_list(kind) and not _is_plain(kind.value_type):
        items = column_of([item for one in values if one for item in one], kind.value_type)
        return pa.ListArray.from_arrays(_offsets(values), items)
    if pa.types.is_map(kind):
        keys = [key for one in values if one for key in one]
        items = [item for one in values if one for item in one.values()]
        return pa.MapArray.from_arrays(
            _offsets(values), pa.array(keys, kind.key_type), column_of(items, kind.item_type)
        )
    return pa.array(values, kind)


def _struct_column(values: Sequence[Any], kind: pa.StructType) -> pa.StructArray:
    is_null = [one is None for one in values]
    has_nulls = True in is_null
    columns: list[pa.Array] = []
    for number in range(kind.num_fields):
        member_of = attrgetter(MEMBER.format(number))
        members = (
            [None if one is None else member_of(one) for one in values]
            if has_nulls
            else list(map(member_of, values))
        )
        columns.append(column_of(members, kind.field(number).type))
    mask = pa.array(is_null) if has_nulls else None
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether pyarrow makes columns of this type of lists as well as we do."""
    return not pa.types.is_nested(kind) and not pa.types.is_decimal(kind)


def _decimal_column(values: Sequence[Decimal | None], kind: pa.Decimal128Type) -> pa.Array:
    """Return a column of numbers that have the type's scale.

    pyarrow reads beyond its tables for a number of many more places, such as 1E-999999999, which
    ends the process.
    """
    rules = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
    unit = Decimal((0, (1,), -kind.scale))
    try:
        made = [None if one is None else one.quantize(unit, context=rules) for one in values]
    except DecimalException:
        raise ValueError(
            f"it is no number of at most {kind.precision} digits, {kind.scale} of them behind the "
            "point"
        ) from None
    return pa.array(made, kind)


def _offsets(values: Sequence[Sequence[Any] | Mapping[str, Any] | None]) -> pa.Array:
    """Return where the items of each value begin; null for a value that is null."""
    sizes = (0 if one is None else len(one) for one in values)
    ends = list(accumulate(sizes, initial=0))
    starts: list[int | None] = [
        None if one is None else start for one, start in zip(values, ends, strict=False)
    ]
    return pa.array([*starts, ends[-1]], pa.int32())
