"""Places in the project that tests and benchmarks read from or build into."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

# Sources of programs in other languages: java, go, node.
PEERS: Final = ROOT / "tests" / "interop"

# Jars' class paths, compiled peers: made once and kept.
BUILD: Final = ROOT / "build"
