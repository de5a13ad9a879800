"""Membership of a broker in a cluster: its lives, claims, hand-overs, elections, reassignments."""
