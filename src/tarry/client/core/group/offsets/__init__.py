"""Offsets of a group: committed offsets, and the commits of a member."""
