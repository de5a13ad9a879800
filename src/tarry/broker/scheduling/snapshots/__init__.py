"""Snapshots of the schedules of partitions: who writes them, and how a load begins with one."""
