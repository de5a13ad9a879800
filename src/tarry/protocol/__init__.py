"""Kafka's messages: schema, generated classes, headers and frames."""
