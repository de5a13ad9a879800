"""Workload of scheduled records: each is released once, in its order, and never early."""
