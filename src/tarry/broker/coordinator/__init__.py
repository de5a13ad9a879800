"""Coordinators: states that live in the partitions of an internal topic, and what carries them."""
