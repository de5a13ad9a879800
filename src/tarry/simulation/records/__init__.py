"""Workload of records: producers, readers, a pipeliner, and administrators of topics."""
