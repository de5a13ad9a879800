"""Lives of a broker in a cluster: the lease, the previous life, the identity on the disk."""
