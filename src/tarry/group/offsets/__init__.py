"""Committed offsets, which a group of any kind has."""
