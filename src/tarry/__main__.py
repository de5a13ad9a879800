"""`python -m tarry` is the command `tarry`."""

from __future__ import annotations

from tarry.cli.main import main

main()
