"""A partition on this broker: its leadership, its replicated logs, its followers and producers."""
