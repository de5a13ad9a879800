"""Duties that the broker does by the clock; each is an entry of the timer."""
