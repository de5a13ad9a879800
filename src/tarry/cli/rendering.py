"""Records of one partition as bytes, by whatever renderer the options chose."""

from __future__ import annotations

from tarry.base.errors import TarryError
from tarry.cli.formats import PlainRenderer, Renderer
from tarry.cli.packing import Misfit
from tarry.records.record import Record


class Unprintable(TarryError):
    """A key or value that does not have the form that the options say; names the record.

    `before` are the rendered records in front of it."""

    def __init__(self, sentence: str, before: bytes) -> None:
        super().__init__(sentence)
        self.before = before


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
            sentence = f"{topic} [{partition}] at offset {record.offset}: {error}"
            raise Unprintable(sentence, b"".join(pieces)) from None
    return b"".join(pieces)
