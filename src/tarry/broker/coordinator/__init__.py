"""Coordinators: states kept in the partitions of an internal topic, and the runtime for them."""
