"""Base of the simulated clients: connections, queries, what a run shares and its history."""
