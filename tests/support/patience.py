"""How long a test waits for another process or thread before it counts as hung."""

from __future__ import annotations

from typing import Final

# Whole seconds, which every client takes.  A machine that does other work besides must not fail a
# test; a test that hangs is rare.
PATIENCE_S: Final = 300
