"""The command line: `tarry`, one module for each command, loaded when it is called."""

from __future__ import annotations
