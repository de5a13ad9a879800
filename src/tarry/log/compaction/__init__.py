"""Compaction: of all records with the same key only the last one stays."""
