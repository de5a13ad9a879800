"""Workload of scheduled records: what is due later comes once, in its order, never early."""
