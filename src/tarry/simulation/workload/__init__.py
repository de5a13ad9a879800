"""Clients that behave as real ones do: producers, readers, an administrator, over real frames."""
