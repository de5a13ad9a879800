"""Records of one partition as bytes, by whatever renderer the options chose."""

from __future__ import annotations

from tarry.cli.formats import PlainRenderer, Renderer
from tarry.records.record import Record


def rendered(
    renderer: Renderer | PlainRenderer, topic: str, partition: int, records: list[Record]
) -> bytes:
    if isinstance(renderer, PlainRenderer) and renderer.is_values_only:
        return renderer.render_values(records)
    return b"".join([renderer(topic, partition, record) for record in records])
