"""The broker: one deterministic object that answers requests and knows how to wait."""
