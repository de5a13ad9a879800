"""Records of one partition as bytes, by whatever renderer the options chose."""

from __future__ import annotations

from tarry.base.errors import TarryError
from tarry.cli.formats import PlainRenderer, Renderer
from tarry.cli.packing import Misfit
from tarry.records.record import Record


class Unprintable(TarryError):
    """A key or value that does not have the form that the options say; names the record."""


def rendered(
    renderer: Renderer | PlainRenderer, topic: str, partition: int, records: list[Record]
) -> bytes:
    if isinstance(renderer, PlainRenderer) and renderer.is_values_only:
        return renderer.render_values(records)
    pieces: list[bytes] = []
    for record in records:
        try:
            pieces.append(renderer(topic, partition, record))
        except Misfit as error:
            raise Unprintable(f"{topic} [{partition}] at offset {record.offset}: {error}") from None
    return b"".join(pieces)
