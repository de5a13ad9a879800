"""Metadata answers as a client reads them."""

from __future__ import annotations

from tarry.client.core.metadata_answer import MetadataAnswer, read_metadata
from tarry.protocol.messages.metadata import MetadataResponse
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

VERSION = 12


def encoded(response: MetadataResponse, version: int = VERSION) -> bytes:
    """The fields of an answer, without any header."""
    writer = Writer()
    response.encode(writer, version)
    return writer.finish()


def as_read(response: MetadataResponse) -> MetadataAnswer:
    return read_metadata(Reader(encoded(response)), VERSION)
