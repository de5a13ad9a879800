"""Indexes of a segment, and of a log's leader epochs."""
