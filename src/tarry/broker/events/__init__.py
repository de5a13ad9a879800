"""Event log: the broker's own events in the topic `__tarry_events`."""
