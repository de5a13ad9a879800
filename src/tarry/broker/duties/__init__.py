"""Duties that the broker does by the clock, each of them a timer entry."""
