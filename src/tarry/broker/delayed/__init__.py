"""The operations that wait: a produce for durability, a fetch for bytes, a write for metadata."""
