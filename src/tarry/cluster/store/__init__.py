"""Stores of metadata: the contract of both, changes, and the store of a broker that is alone."""
