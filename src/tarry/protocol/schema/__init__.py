"""Kafka's messages in our own notation, one file per API, and its parser (see `notation`)."""

from tarry.protocol.schema.notation import ApiSchema, Field, Struct, Versions, load, load_all, parse

__all__ = ["ApiSchema", "Field", "Struct", "Versions", "load", "load_all", "parse"]
