"""Several brokers and a simulated etcd in one world."""
