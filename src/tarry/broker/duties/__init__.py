"""What the broker does by the clock, beside answering requests: each duty is a timer entry."""
