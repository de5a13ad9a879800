"""Metadata as the broker changes it for clients, and what it hosts in step with it."""
