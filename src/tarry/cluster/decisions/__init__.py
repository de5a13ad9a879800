"""Decisions about the metadata: each takes the state, and returns the records of a change."""
