"""Duties that the broker does by the clock, beside answering requests: each is a timer entry."""
