"""Consumer groups: membership, rounds and offsets, decided as pure state machines."""
