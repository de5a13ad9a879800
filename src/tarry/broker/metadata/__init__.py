"""Metadata: how clients change it, and how this broker hosts topics in step with it."""
