"""A partition's log: segments, indexes, recovery, retention, recovery points."""
