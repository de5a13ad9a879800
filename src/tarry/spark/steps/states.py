"""State of steps that remember: what a session needs for it, said before a query starts."""

from __future__ import annotations

from importlib import util
from typing import TYPE_CHECKING, Final

from tarry.spark.steps.refused import StepRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROVIDER_KEY: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Buckets of a step's keys: tasks that can share the work.  A checkpoint holds the state by bucket,
# so their number never changes.
BUCKETS: Final = 64

# Microseconds of Spark's timestamps in a millisecond.
MILLISECOND_US: Final = 1_000


def check_state(df: DataFrame, step: str) -> None:
    """Refuse a stream whose session cannot keep state with timers."""
    if df.sparkSession.conf.get(PROVIDER_KEY, None) != ROCKSDB:
        raise StepRefused(
            f"{step} on a stream keeps its state in RocksDB, which Spark must be told: "
            f'spark.conf.set("{PROVIDER_KEY}", "{ROCKSDB}")'
        )
    if util.find_spec("google.protobuf") is None:
        raise StepRefused(
            f"{step} on a stream needs protobuf, by which Spark and Python speak of state: "
            'pip install "tarry[spark]"'
        )


def check_columns(df: DataFrame, step: str, names: list[str]) -> None:
    """Refuse names that are no columns."""
    if not names:
        raise StepRefused(f"{step} needs the name of a column at least")
    for name in names:
        if name not in df.columns:
            raise StepRefused(
                f"{step}: there is no column {name!r:.60} among {', '.join(df.columns):.300}"
            )
