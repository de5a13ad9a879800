"""Handlers, one module for each API key: `handle(context, request)` answers now or later.

A handler may take further arguments before these two; `make_routes` binds them.
"""
