"""Scheduled records: parked in a companion log until they are due, then released."""
