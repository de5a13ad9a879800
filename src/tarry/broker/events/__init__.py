"""Event log: what the broker tells of itself in the topic `__tarry_events`."""
