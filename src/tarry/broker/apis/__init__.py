"""Handlers, one module an API key: `handle(context, request)` answers now or later.

Whatever else a handler needs comes before these two, and `make_routes` binds it.
"""
