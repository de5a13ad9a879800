"""Columns of a read: those of records as they are, and fields of values that are decoded."""
