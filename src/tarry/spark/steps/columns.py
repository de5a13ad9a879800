"""Columns that the steps hand on: the record as it came, its event time, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# All columns of the source, as a struct.
RECORD: Final = "_record"
# Event time; null where it is not known.
TIME: Final = "_time"
# What a row failed: a step's or a rule's name, and a sentence.  Both null where it is well.
RULE: Final = "_rule"
ERROR: Final = "_error"

OWN: Final = (RECORD, TIME, RULE, ERROR)

# Where a record came from.
ORIGIN: Final = ("topic", "partition", "offset")


def column(name: str) -> Column:
    """Return the column of this name: dots and backticks in it say nothing else."""
    from pyspark.sql import functions as of

    return of.col(quoted(name))


def quoted(name: str) -> str:
    """Return a name as an expression has it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def plain_names(names: Sequence[str]) -> list[str]:
    """Return the names, with others in place of those that have dots or backticks."""
    return [
        f"_tarry_{number}" if "." in name or "`" in name else name
        for number, name in enumerate(names)
    ]


def check_names(names: Iterable[str]) -> None:
    """Refuse fields that cannot be columns beside each other and those of the steps."""
    seen: dict[str, str] = {name: name for name in OWN}
    for name in names:
        # Spark takes names that differ in the case of their letters for one.
        other = seen.setdefault(name.lower(), name)
        if other in OWN:
            raise StepRefused(
                f"the schema has a field {name!r:.60}, which is the name of a column of the steps: "
                f"give the field another name; {', '.join(OWN)} are taken"
            )
        if other != name:
            raise StepRefused(
                f"the schema has the fields {other!r:.60} and {name!r:.60}, which Spark cannot "
                "tell apart: give one of them another name"
            )


def check_decoded(frame: DataFrame, step: str, record_needs: Iterable[str] = ()) -> None:
    """Refuse a DataFrame that did not come through `decode`, or lacks columns of the source."""
    missing = [name for name in OWN if name not in frame.columns]
    if missing:
        raise StepRefused(
            f"{step} needs the columns that decode makes, and {', '.join(missing)} is not there: "
            f"call decode before {step}"
        )
    of_record = frame.schema[RECORD].dataType.fieldNames()  # type: ignore[attr-defined]
    for name in record_needs:
        if name not in of_record:
            hint = ', such as .option("includeHeaders", "true")' if name == "headers" else ""
            raise StepRefused(
                f"{step} needs the column {name} of the source, and it was not read: "
                f"let the source give it{hint}"
            )
