"""Etcd as the store of metadata: transactions, the watch, joining a cluster, migration to it."""
