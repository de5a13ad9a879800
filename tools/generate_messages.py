"""Write `protocol/messages/*.py`, `api_keys.py` and `registry.py` from `protocol/schema/*.schema`.

python tools/generate_messages.py            write what differs
python tools/generate_messages.py --check    write nothing; exit 1 if something differs
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

from message_code import NOTICE, message_module
from tarry.protocol.schema.notation import ApiSchema, InvalidSchema, load_all

PROTOCOL: Final = Path(__file__).resolve().parent.parent / "src" / "tarry" / "protocol"


def api_keys_module(apis: list[ApiSchema]) -> str:
    keys = [f"{api.snake_name.upper()}: Final = {api.key}" for api in apis]
    rows = [
        f'    {api.snake_name.upper()}: Api({api.key}, "{api.name}", {api.versions.first}, '
        f"{api.versions.last}, {api.flexible.first if api.flexible else -1}),"
        for api in apis
    ]
    return "\n".join(
        [
            '"""API keys, and for each the versions that our schema describes.',
            "",
            NOTICE,
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import Final",
            "",
            *keys,
            "",
            "class Api:",
            '    """Key of an API; `flexible_from` is -1 if no version is flexible."""',
            "",
            "    def __init__(",
            "        self,",
            "        key: int,",
            "        name: str,",
            "        version_min: int,",
            "        version_max: int,",
            "        flexible_from: int,",
            "    ) -> None:",
            "        self.key = key",
            "        self.name = name",
            "        self.version_min = version_min",
            "        self.version_max = version_max",
            "        self.flexible_from = flexible_from",
            "",
            "    def is_flexible(self, version: int) -> bool:",
            "        return 0 <= self.flexible_from <= version",
            "",
            "APIS: Final[dict[int, Api]] = {",
            *rows,
            "}",
        ]
    )


def registry_module(apis: list[ApiSchema]) -> str:
    imports = [
        f"from tarry.protocol.messages.{api.snake_name} import ("
        f"{api.request.name}, {api.response.name}, "
        f"decode_{api.snake_name}_request, decode_{api.snake_name}_response)"
        for api in sorted(apis, key=lambda api: api.snake_name)
    ]
    rows = [
        f"    api_keys.{api.snake_name.upper()}: Messages("
        f"{api.request.name}, decode_{api.snake_name}_request, "
        f"{api.response.name}, decode_{api.snake_name}_response),"
        for api in apis
    ]
    return "\n".join(
        [
            '"""Classes and decoders of every API by its key, for whoever meets any of them.',
            "",
            "Imports all messages; who needs one API imports its module.",
            "",
            NOTICE,
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from collections.abc import Callable",
            "from typing import Final, NamedTuple",
            "",
            "from tarry.protocol import api_keys",
            "from tarry.protocol.message import Message",
            *imports,
            "from tarry.wire.reader import Reader",
            "",
            "class Messages(NamedTuple):",
            '    """Request and response of one API."""',
            "",
            "    request_type: type[Message]",
            "    decode_request: Callable[[Reader, int], Message]",
            "    response_type: type[Message]",
            "    decode_response: Callable[[Reader, int], Message]",
            "",
            "MESSAGES: Final[dict[int, Messages]] = {",
            *rows,
            "}",
        ]
    )


def formatted(source: str) -> str:
    """Format a source with `ruff format`, so that generated files pass the check of all others."""
    name = str(PROTOCOL / "messages.py")
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", name, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return done.stdout


def generated_files(apis: list[ApiSchema]) -> dict[Path, str]:
    files = {
        PROTOCOL / "api_keys.py": api_keys_module(apis),
        PROTOCOL / "registry.py": registry_module(apis),
        PROTOCOL / "messages" / "__init__.py": (
            f'"""Requests and responses, one module per API.\n\n{NOTICE}\n"""\n'
        ),
    }
    for api in apis:
        files[PROTOCOL / "messages" / f"{api.snake_name}.py"] = message_module(api)
    return {path: formatted(source) for path, source in files.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if outdated")
    arguments = parser.parse_args()
    try:
        files = generated_files(load_all())
    except InvalidSchema as error:
        sys.stderr.write(f"{error}\n")
        return 1
    stale = [path for path in (PROTOCOL / "messages").glob("*.py") if path not in files]
    outdated = [
        path
        for path, text in files.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in sorted(stale + outdated):
        if arguments.check:
            sys.stderr.write(f"outdated: {path}; run tools/generate_messages.py\n")
        elif path in stale:
            path.unlink()
        else:
            path.write_text(files[path], encoding="utf-8")
    return 1 if arguments.check and stale + outdated else 0


if __name__ == "__main__":
    sys.exit(main())
