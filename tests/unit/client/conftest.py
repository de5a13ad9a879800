"""Shared by the tests of the client: the scripted cluster is a module beside this one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
