"""Bytes on the wire: readers, writers, variable-length integers, checksums and codecs."""

from tarry.wire.reader import Reader, Window, window_of
from tarry.wire.varint import MalformedData
from tarry.wire.writer import ChunkList, Writer

__all__ = ["ChunkList", "MalformedData", "Reader", "Window", "Writer", "window_of"]
