"""Write the messages of etcd from `runtime/etcd/etcd.proto`, by protoc of the package grpcio-tools.

python tools/generate_etcd.py            write the files that differ
python tools/generate_etcd.py --check    write nothing; exit 1 if one differs

The generated code names the release of protobuf that it needs at least; the extra `cluster` of
pyproject.toml must ask for that one, so renew both together.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from grpc_tools import protoc

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "src" / "tarry" / "runtime" / "etcd"
SOURCE: Final = "etcd.proto"


def generated() -> dict[str, str]:
    """Return the generated files by name."""
    with tempfile.TemporaryDirectory() as folder:
        words = [f"-I{FOLDER}", f"--python_out={folder}", f"--pyi_out={folder}", SOURCE]
        if protoc.main(["protoc", *words]) != 0:
            sys.exit(f"protoc refused {SOURCE}, see above")
        return {path.name: path.read_text() for path in sorted(Path(folder).iterdir())}


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    is_checking = parser.parse_args().check
    for name, text in generated().items():
        path = FOLDER / name
        if path.exists() and path.read_text() == text:
            continue
        if is_checking:
            sys.exit(f"{path.relative_to(ROOT)} is not what tools/generate_etcd.py writes")
        path.write_text(text)


if __name__ == "__main__":
    main()
