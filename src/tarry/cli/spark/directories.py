"""Directories as commands take them: paths of a file system, where a URL would make a new one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)


class DirectoryPath(click.ParamType[Path]):
    """Path of a directory, absolute; an object store is refused."""

    name = "PATH"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        text = str(value)
        if URL.fullmatch(text):
            self.fail(
                f"{text!r:.100} is no directory of a file system: write the path of one that is "
                "mounted here",
                param,
                ctx,
            )
        return Path(text).absolute()
