"""Work on much of a coordinator's state, in steps of a few milliseconds, one step a turn."""

from __future__ import annotations


class Chore:
    """Something that is done in steps."""

    def step(self) -> bool:
        """Do a part; True when all is done."""
        raise NotImplementedError
