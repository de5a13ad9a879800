"""Module that Spark finds by its name: `spark.read.format("tarry")` needs no jar and no call."""

from tarry.spark.source import TarrySource as DefaultSource

__all__ = ["DefaultSource"]
