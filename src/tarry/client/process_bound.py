"""ProcessBound: what all clients say when they are to be pickled or copied."""

from __future__ import annotations

from typing import NoReturn


class ProcessBound:
    """Base of every client: its connections, locks and threads belong to one process."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise TypeError(
            f"{article} {name} cannot be pickled or copied, its connections belong to this "
            "process: make it in the process that uses it"
        )
