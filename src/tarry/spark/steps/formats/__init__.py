"""Formats of values: what a record's value is decoded by, as columns of Arrow; without Spark."""
