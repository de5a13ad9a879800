"""Groups in a cluster: their coordinators move from one broker to another."""
