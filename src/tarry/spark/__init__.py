"""Tarry for Spark: topics as DataFrames, through PySpark and without a jar.

    spark.read.format("tarry").option("kafka.bootstrap.servers", "localhost:9092")
         .option("subscribe", "orders").load()

Spark finds the format by itself where the wheel is installed: it imports `pyspark_tarry`.  A
session that cannot find it is told of it by `tarry.spark.register(spark)`.  PySpark is loaded when
it is first needed: `pip install "tarry[spark]"` brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the format `tarry` with a session whose workers can run it."""
    from tarry.spark.installed import check_pyspark, check_workers
    from tarry.spark.source import TarrySource

    check_pyspark()
    check_workers(spark)
    spark.dataSource.register(TarrySource)
