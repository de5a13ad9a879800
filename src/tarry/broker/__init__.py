"""The broker: one deterministic object that answers requests and lets requests wait."""
