"""Compiles the hot modules into wheels, and so into what `pip install` makes of the source.

| TARRY_COMPILE | the wheel |
|---|---|
| not set | compiled where a C compiler is; elsewhere pure, with a line that says what that costs |
| 0 | pure: for every platform |
| 1 | compiled; the build fails where that cannot be |

A compiled wheel is tagged for the interpreter and the platform that built it.  An editable
install is compiled by `make setup`, in place.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE: Final = "TARRY_COMPILE"


class CompiledWheel(BuildHookInterface[Any]):
    """Build hook that adds the compiled unit to a wheel."""

    def is_wanted(self) -> bool:
        """Return true if compiling is asked for, or not forbidden and possible."""
        if self.target_name != "wheel":
            return False
        asked = os.environ.get(VARIABLE, "")
        if asked not in ("", "0", "1"):
            sys.exit(f"{VARIABLE}={asked}: it is 0, 1 or not set")
        return asked == "1" or (not asked and self.what_is_missing() is None)

    def what_is_missing(self) -> str | None:
        """Return what the machine lacks for compiling, as a sentence, or None."""
        sys.path.insert(0, str(Path(self.root, "tools")))
        import compile_hot

        return compile_hot.what_is_missing()

    def dependencies(self) -> list[str]:
        """Return the packages that compiling needs; a pure wheel needs none of them."""
        if not self.is_wanted():
            return []
        # The compiler reads the types of all that the hot modules import.
        metadata = self.metadata.core
        return [*metadata.dependencies, *metadata.optional_dependencies["compile"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        if not self.is_wanted():
            self._tell_pure(self.what_is_missing() or f"{VARIABLE}=0")
            return
        missing = self.what_is_missing()
        if missing is not None:
            sys.exit(f"{VARIABLE}=1: {missing}")
        import compile_hot

        try:
            pairs = compile_hot.build_for_wheel()
        except (Exception, SystemExit) as error:  # mypyc exits where types do not fit
            if os.environ.get(VARIABLE) == "1":
                raise
            # A compiler that is there and does not work is no reason not to install.
            self._tell_pure(f"compiling failed: {error}")
            return
        for library, place in pairs:
            build_data["force_include"][str(library)] = str(place)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _tell_pure(self, reason: str) -> None:
        self.app.display_warning(
            f"Tarry is built without compiled modules ({reason}): a broker then needs about four "
            "times the CPU"
        )
