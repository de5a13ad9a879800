"""File descriptors: raise the soft limit at the start, and refuse one that is too low."""

from __future__ import annotations

import resource
from typing import Final

from tarry.runtime.refusal import StartRefused

# Smallest limit: a log keeps up to 512 files open (log/open_files.py), dirty ones beyond it, and
# connections need descriptors too.
DESCRIPTORS_MIN: Final = 768

# Largest useful limit; some systems take "unlimited" for an error.
DESCRIPTORS_WANTED: Final = 1_048_576

# Limit that macOS means by "unlimited" (OPEN_MAX).
_DESCRIPTORS_MACOS: Final = 10_240

# Directories that one flush opens beside the files of logs, which are open by then.
_RESERVED_FOR_FLUSHES_MAX: Final = 4_096


def raise_descriptor_limit() -> int:
    """Raise the soft limit as far as the hard one allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = _finite(soft)
    for wanted in (min(_finite(hard), DESCRIPTORS_WANTED), _DESCRIPTORS_MACOS):
        if wanted <= soft:
            continue
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        soft = wanted
        break
    if soft < DESCRIPTORS_MIN:
        raise StartRefused(
            f"this process may open {soft} files and needs at least {DESCRIPTORS_MIN}: raise the "
            f"limit, for instance with ulimit -n {DESCRIPTORS_MIN * 8}"
        )
    return soft


def files_end() -> int:
    """Return the descriptor from which on files are opened only for a flush.

    The system gives the lowest free descriptor, so one as high as this shows that the process
    has few left.  A flush gives descriptors back, and needs some to begin.
    """
    soft = _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return soft - min(soft // 8, _RESERVED_FOR_FLUSHES_MAX)


def connections_max(descriptors: int) -> int:
    """Return how many connections leave enough descriptors for files."""
    return descriptors - min(descriptors // 4, 65_536) - DESCRIPTORS_MIN // 2


def _finite(limit: int) -> int:
    return DESCRIPTORS_WANTED if limit == resource.RLIM_INFINITY else limit
