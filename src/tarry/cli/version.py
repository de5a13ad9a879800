"""`tarry version`: what runs here."""

from __future__ import annotations

import platform
from typing import Final

import click

import tarry

EXAMPLES: Final = """\b
Examples:
  tarry version        what to name in a report
  tarry --version      the number alone
"""


@click.command(epilog=EXAMPLES)
def version() -> None:
    """Show the version, the form of the hot modules, Python and the platform."""
    click.echo(f"tarry {tarry.__version__}, {tarry.FORM} ({tarry.FORM_REASON})")
    click.echo(f"{platform.python_implementation()} {platform.python_version()}")
    click.echo(f"{platform.system()} {platform.release()} {platform.machine()}")
