"""Write the Admin of asyncio out of the synchronous one, so that no call is missing in either.

python tools/generate_aio.py            write the file if it differs
python tools/generate_aio.py --check    write nothing; exit 1 if it differs

Every public call of `client/sync/admin.py` becomes a coroutine in `client/aio/admin.py`; how a face
waits, begins and ends stands here.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "tarry" / "client" / "sync" / "admin.py"
TARGET: Final = ROOT / "src" / "tarry" / "client" / "aio" / "admin.py"

HEAD: Final = '''"""Written by `tools/generate_aio.py` out of `sync/admin`: Admin for asyncio.

All tasks of one event loop may use it, at the same time too.  What several things are asked for in
one call have an outcome each: an error of one stands beside the answers of the others and is not
raised.
"""

from __future__ import annotations

from tarry.client.aio.driver import LoopDriver
'''

BEGINNING: Final = '''class Admin(ClientFace[AdminCore]):
    """Admin client for asyncio; every call takes `timeout` in seconds; without one it is
    `default.api.timeout.ms`.  Whether a change whose call is cancelled took place is not known."""

    _driver: LoopDriver[AdminCore]

    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        **arguments: Unpack[ClientArguments],
    ) -> None:
        check_settings("Admin", settings)
        self.settings = made = ClientSettings(settings, **arguments)
        self._driver = driver = LoopDriver(
            made, lambda driver: AdminCore(made, SystemRandom(), driver.now_ms())
        )
        driver.close_when_forgotten(self, "an Admin")

    @property
    def _requests(self) -> AdminRequests:
        return self._core.requests

'''

END: Final = '''
    async def _ask(self, steps: Steps[Answer], timeout: float | None) -> Answer:
        return await self._wait_for(partial(self._core.begin_errand, steps), timeout)

    async def _wait_for(self, begin: Begin[Answer], timeout: float | None) -> Answer:
        return await self._driver.perform(begin, timeout, self.settings.api_timeout_ms)

    async def close(self) -> None:
        """Close; calls under way in other tasks raise ClientClosed."""
        driver = self._driver
        driver.check_parent()
        if not driver.is_closed and not driver.is_stranded:
            driver.check_here()
        driver.close()
        await driver.settle()

    async def __aenter__(self) -> Self:
        self._driver.check_usable()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error_type is None or not self._driver.is_forked:
            await self.close()
'''

# The calls stand between these in the source.
CALLS_BEGIN: Final = "    # --- Topics\n"
CALLS_END: Final = "    def _ask("


def admin_text() -> str:
    """Return the module: head, imports of the source, calls that are awaited, end."""
    source = SOURCE.read_text(encoding="utf-8")
    imports = source[source.index("from collections") : source.index("\nclass Admin")]
    imports = re.sub(r"^from tarry\.client\.sync.*\n", "", imports, flags=re.MULTILINE)
    calls = source[source.index(CALLS_BEGIN) : source.index(CALLS_END)]
    calls = re.sub(r"^    def ", "    async def ", calls, flags=re.MULTILINE)
    calls = re.sub(r"\bself\._(ask|wait_for)\(", r"await self._\1(", calls)
    text = HEAD + imports + "\n\n" + BEGINNING + calls.rstrip() + "\n" + END
    return formatted(text)


def formatted(text: str) -> str:
    """Return the text without unused imports, in the project's format."""
    ruff = Path(sys.executable).with_name("ruff")
    name = ["--stdin-filename", str(TARGET), "-"]
    for command in (["check", "--quiet", "--select", "I,F401", "--fix"], ["format", "--quiet"]):
        done = subprocess.run(
            [str(ruff), *command, *name],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        text = done.stdout
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    is_check = parser.parse_args().check
    text = admin_text()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    if is_check:
        print(f"{TARGET.relative_to(ROOT)} is not what tools/generate_aio.py writes")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
