"""Pipeline files as commands read them: mistakes become lines on stderr and the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from tarry.cli.running import EXIT_USAGE, fail
from tarry.cli.tables import count_of

if TYPE_CHECKING:
    from tarry.spark.pipeline.file.mistakes import PipelineRefused
    from tarry.spark.pipeline.file.sections import Pipeline


def load_pipeline(path: Path) -> Pipeline:
    """Read a pipeline file, or end with its mistakes."""
    from tarry.spark.pipeline.file.mistakes import PipelineRefused
    from tarry.spark.pipeline.file.reader import read_pipeline

    try:
        return read_pipeline(path)
    except PipelineRefused as refused:
        tell_mistakes(refused)


def tell_mistakes(refused: PipelineRefused) -> NoReturn:
    """Print the mistakes of a file and end."""
    for line in refused.lines():
        click.echo(line, err=True)
    fail(f"{count_of(len(refused.mistakes), 'mistake')} in {refused.path}", EXIT_USAGE)
