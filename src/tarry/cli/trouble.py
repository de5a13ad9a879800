"""Trouble with the cluster while a command waits for it: told once, not with every look."""

from __future__ import annotations

from tarry.cli.tables import complain


class Trouble:
    """Filter of the client's reports: prints a trouble only when it is new."""

    def __init__(self) -> None:
        self._is_told = False

    def look(self, trouble: str) -> None:
        """Print one line when the cluster goes away, and none until it was back; "" is no
        trouble.
        """
        if trouble and not self._is_told:
            complain(f"waiting: {trouble}")
        self._is_told = bool(trouble)
