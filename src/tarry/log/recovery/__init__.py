"""Recovery points, what a start makes of them, and verification of a stopped broker's logs."""
