"""`tarry version`: what runs here."""

from __future__ import annotations

import platform

import click

import tarry


@click.command()
def version() -> None:
    """Show the version, the form of the hot modules, Python and the platform."""
    click.echo(f"tarry {tarry.__version__}, {tarry.FORM} ({tarry.FORM_REASON})")
    click.echo(f"{platform.python_implementation()} {platform.python_version()}")
    click.echo(f"{platform.system()} {platform.release()} {platform.machine()}")
