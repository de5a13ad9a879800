"""Metadata of the cluster: decided as records, durable, applied to one state."""
