"""Offsets of a group: what it committed, and what a member commits."""
