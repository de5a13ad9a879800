"""Scheduled records: when they are due, what is noted about them, and what is still pending."""
