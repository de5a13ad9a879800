"""Replication: what leaders know of their followers, and followers of their leaders."""
