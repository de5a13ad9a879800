"""One module an API key: `handle(broker, context, request)` answers now or later."""
