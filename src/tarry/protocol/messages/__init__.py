"""Requests and responses, one module per API.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""
