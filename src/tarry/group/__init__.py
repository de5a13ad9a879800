"""Groups of every kind: members and offsets, decided as pure state machines."""
