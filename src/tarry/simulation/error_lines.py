"""ERROR lines of the log that a run may write, because an injected fault explains them.

Any other ERROR line is a violation: nobody planned its cause, or the broker misjudged a fault.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tarry.simulation import faults
from tarry.simulation.cluster import scenario as cluster_faults

_OF_FLUSHES: Final = (faults.FLUSH_FAULT, faults.WRITE_FAULT, faults.SPACE_FAULT)

# Text that a line contains, and the faults that explain it.
_EXPECTED: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("disk full: ", (faults.WRITE_FAULT, faults.SPACE_FAULT)),
    ("a flush failed (", _OF_FLUSHES),
    ("the disk failed", (*faults.OF_THE_DISK, cluster_faults.REFUSED_DIRECTORY)),
    (" is damaged at offset ", (faults.READ_FAULT, cluster_faults.NEW_DISK)),
    # A replica was taken away and has come back, and the machine has lost power before its first
    # file was durable.
    ("00000000000000000000.log is missing; ", (cluster_faults.OPERATED,)),
    (" cannot be loaded: ", (faults.READ_FAULT,)),
    # A new disk and an unclean election lose records.
    (" has lost records of ", (cluster_faults.NEW_DISK, cluster_faults.STRANDED)),
)


def unexpected(lines: list[str], struck: Collection[str]) -> list[str]:
    """Return a sentence for each line that no fault in `struck` explains."""
    return [
        f"an ERROR line that no fault explains: {line}"
        for line in lines
        if not any(
            part in line and any(kind in struck for kind in kinds) for part, kinds in _EXPECTED
        )
    ]
