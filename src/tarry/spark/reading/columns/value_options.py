"""Options of values as typed columns, and the schema that a read has with them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from tarry.spark.option_table import TYPED, names_of
from tarry.spark.options import OptionRefused, OptionTexts
from tarry.spark.reading.columns.names import COLUMNS
from tarry.spark.reading.columns.schema import check_nullable, spark_schema
from tarry.spark.reading.columns.value_columns import (
    DROP_MALFORMED,
    FAIL_FAST,
    PERMISSIVE,
    ValueColumns,
)
from tarry.spark.steps.columns import ERROR, OWN, RECORD
from tarry.spark.steps.decoding import decoded_schema
from tarry.spark.steps.formats.decoders import ValueDecoding, decoder_of, value_decoding

if TYPE_CHECKING:
    import pyarrow as pa

ALL_FIELDS: Final = "*"
OF_RECORD: Final = f"{RECORD}."
MODES: Final = ("permissive", "dropMalformed", "failFast")
TYPED_NAMES: Final = names_of(TYPED)


def value_columns(texts: OptionTexts, given: StructType | None) -> ValueColumns | None:
    """Return the typed columns of a read; None without the option valueFormat.

    `given` is the schema of `.schema(...)`: it chooses columns, and without valueSchema it says
    what the fields of JSON are.  Raises OptionRefused.
    """
    if texts.text("valueFormat") is None:
        for name in TYPED_NAMES:
            if texts.text(name) is not None:
                raise OptionRefused(f"{name} needs the option valueFormat")
        return None
    if given is not None:
        check_nullable(given)
    mode = (texts.text("mode") or PERMISSIVE).strip().lower()
    if mode not in (PERMISSIVE, DROP_MALFORMED, FAIL_FAST):
        raise OptionRefused(f"mode={mode!r:.60} is none of {', '.join(MODES)}")
    decoding = _decoding(texts, given)
    fields = decoder_of(decoding).fields
    made = ValueColumns(decoding, mode, *_by_option(texts, fields))
    if given is None or given.simpleString() == typed_schema(made).simpleString():
        return made
    if texts.text("columns") is not None:
        raise OptionRefused("choose columns by .schema(...) or by the option columns, not by both")
    made = ValueColumns(decoding, mode, tuple(given.names), _record_of(given))
    _check_given(given, made, fields)
    return made


def typed_schema(columns: ValueColumns) -> StructType:
    """Return the schema of these columns."""
    fields = decoder_of(columns.decoding).fields
    whole = decoded_schema(fields, spark_schema(columns.record))
    return StructType([whole[name] for name in columns.names])


def _decoding(texts: OptionTexts, given: StructType | None) -> ValueDecoding:
    kind = (texts.text("valueFormat") or "").strip().lower()
    schema = texts.text("valueSchema")
    of_fields: StructType | None = None
    if schema is None and kind == "json":
        own = StructType([one for one in given or () if one.name not in OWN])
        if not own.fields:
            raise OptionRefused(
                "valueFormat=json needs to know the fields: name a file of JSON Schema by the "
                'option valueSchema, or give .schema("id string, amount bigint")'
            )
        of_fields = own
    return value_decoding(
        kind,
        of_fields if schema is None else schema,
        texts.text("valueMessage"),
        texts.text("valueRegistry"),
        texts.text("eventTime"),
    )


def _by_option(
    texts: OptionTexts, fields: pa.StructType
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that the option `columns` names, and what `_record` has of them."""
    of_record = COLUMNS if texts.flag("includeHeaders", False) else COLUMNS[:-1]
    wanted = texts.text("columns")
    if wanted is None:
        return (*fields.names, RECORD, ERROR), of_record
    names: list[str] = []
    record: list[str] = []
    for word in (part.strip() for part in wanted.split(",")):
        inner = word.removeprefix(OF_RECORD)
        if word == ALL_FIELDS:
            names += fields.names
        elif inner != word and inner in COLUMNS:
            names.append(RECORD)
            record.append(inner)
        elif word in fields.names or word in OWN:
            names.append(word)
            record += of_record if word == RECORD else ()
        else:
            raise OptionRefused(
                f"columns={wanted!r:.100} names {word!r:.60}, and there are "
                f"{', '.join(fields.names)!s:.300}, {', '.join(OWN)}; of {RECORD} there are "
                f"{', '.join(COLUMNS)}, such as {OF_RECORD}offset"
            )
    if record and of_record is COLUMNS:
        record.append(COLUMNS[-1])
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(record))


def _record_of(given: StructType) -> tuple[str, ...]:
    """Return the record's columns that a given schema has."""
    for field in given:
        if field.name == RECORD and isinstance(field.dataType, StructType):
            return tuple(field.dataType.names)
    return ()


def _check_given(given: StructType, made: ValueColumns, fields: pa.StructType) -> None:
    names = [*made.names, *(OF_RECORD + one for one in made.record)]
    for name, count in Counter(names).items():
        if count > 1:
            raise OptionRefused(f".schema(...) has the column {name:.60} twice: leave one out")
        if name not in (*fields.names, *OWN, *(OF_RECORD + one for one in COLUMNS)):
            raise OptionRefused(
                f".schema(...) has the column {name:.60}, and there are "
                f"{', '.join(fields.names)!s:.300}, {', '.join(OWN)}"
            )
    if RECORD in made.names and not made.record:
        raise OptionRefused(
            f".schema(...) has {RECORD} without a column: name some, such as {RECORD} "
            "struct<offset: bigint>"
        )
    wanted = typed_schema(made)
    for one, own in zip(given, wanted, strict=True):
        if one.dataType.simpleString() != own.dataType.simpleString():
            raise OptionRefused(
                f".schema(...) has {one.name:.60} as {one.dataType.simpleString():.200}, and it is "
                f"{own.dataType.simpleString():.200}"
            )
