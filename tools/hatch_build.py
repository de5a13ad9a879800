"""Compiled wheels, when asked for: `TARRY_COMPILE=1 python -m build --wheel`.

Without the variable the wheel is pure Python and fits every platform; installing from the sdist
never compiles.  With it the hot modules are compiled for the interpreter that builds, beside
their sources, and the wheel is tagged for it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledWheel(BuildHookInterface[Any]):
    """Adds the compiled unit to a wheel; an editable install is compiled by `make setup`."""

    def is_wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("TARRY_COMPILE") == "1"

    def dependencies(self) -> list[str]:
        return ["librt", "mypy", "mypy-extensions", "setuptools"] if self.is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self.is_wanted() or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "tools")))
        import compile_hot

        missing = compile_hot.what_is_missing()
        if missing is not None:
            sys.exit(f"TARRY_COMPILE=1: {missing}")
        for library, place in compile_hot.build_for_wheel():
            build_data["force_include"][str(library)] = str(place)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
