"""Events: what `__tarry_events` tells, read for the jobs and reports that stand on it."""
