"""Assignment: how the members of a group share partitions out, and how they tell each other."""
