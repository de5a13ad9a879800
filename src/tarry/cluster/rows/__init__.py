"""Rows of etcd: their formats, their reading and checking, and the records that they become."""
