"""Tables: results of jobs as tables of pyarrow, with columns that do not depend on the rows.

`spark.createDataFrame(table)` makes a DataFrame of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tarry.client.arrow.installed import load_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import DataclassInstance


def table_of(columns: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return rows as a table; columns have the names of Arrow's types, such as `int64`."""
    arrow = load_pyarrow()
    kinds = {"time": arrow.timestamp("ms", "UTC")}
    schema = arrow.schema(
        [
            (name, kinds[kind] if kind in kinds else arrow.type_for_alias(kind))
            for name, kind in columns.items()
        ]
    )
    return arrow.Table.from_pylist([{name: row[name] for name in columns} for row in rows], schema)


def flat_row(row: DataclassInstance) -> dict[str, object]:
    """Return a row of a job, a dataclass with `begin_ms`, without structures: a percentile is two
    columns, such as `p99_at_most_ms`."""
    fields = asdict(row)
    flat: dict[str, object] = {"begin": fields["begin_ms"]}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat.update({f"{name}_{bound}": number for bound, number in value.items()})
        else:
            flat[name] = value
    return flat
