"""Scheduled records as an administrator sees them: what waits, and its cancels and moves."""
