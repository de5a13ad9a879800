"""Replication of partitions between brokers: the leader's side and the follower's."""
