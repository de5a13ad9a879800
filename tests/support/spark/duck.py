"""DuckDB as a reader of archives, in a process of its own.

Its end writes what it leaks to standard error, which would come behind pytest's closing line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.support.patience import PATIENCE_S

_PROGRAM = """
import json, sys, duckdb
print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))
"""


def rows_of(query: str) -> list[list[Any]]:
    """The rows of a query, whose values JSON can hold."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, query],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert isinstance(rows, list)
    return rows
