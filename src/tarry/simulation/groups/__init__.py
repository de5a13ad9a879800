"""Workload of groups: members, simple consumers, and administrators of groups."""
