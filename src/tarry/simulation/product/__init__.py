"""Workloads of the product's own clients: producers, consumers and members of groups."""
