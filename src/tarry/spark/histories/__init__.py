"""Histories of logs: whether a place that was noted still lies in the log that it was noted of."""
