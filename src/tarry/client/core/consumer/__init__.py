"""Consuming: positions, fetches, look-ups of offsets."""
