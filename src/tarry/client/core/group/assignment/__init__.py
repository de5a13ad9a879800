"""Assignment: how the members of a group share partitions, and the protocol between them."""
