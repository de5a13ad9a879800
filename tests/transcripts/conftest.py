"""The scene of a group stands beside the folders of tests, the scripted cluster with the client's,
and the client's coordinator here."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

for folder in (TESTS, TESTS / "unit" / "client", TESTS / "transcripts"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
