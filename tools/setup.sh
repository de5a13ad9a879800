#!/usr/bin/env bash
# Makes .venv with everything that developing needs and compiles the hot modules in place.
# Costs a third of a second when nothing has changed.  What is missing is said in one sentence.
#
#     tools/setup.sh [--interpreted | --bench]
#
# --interpreted: compile nothing.  --bench: the libraries that `make bench-timer` compares with, too.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}

stop() {
    echo "make setup: $*" >&2
    exit 1
}

case "$(uname -s)" in
Linux | Darwin) ;;
*) stop "Tarry runs on Linux and macOS; on Windows use WSL." ;;
esac

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    command -v "$PYTHON" >/dev/null ||
        stop "there is no $PYTHON; install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3.12"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "$PYTHON is $("$PYTHON" -V 2>&1); Tarry needs 3.11 or newer, name one: make setup PYTHON=/path/to/python3.12"
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
        stop "$PYTHON cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv"
    rm -rf .venv
    "$PYTHON" -m venv .venv || stop "making .venv failed, see above"
fi

# What is to be installed stands in two tables of pyproject.toml; their digest tells if it is.
wanted=$(.venv/bin/python - <<'END'
import hashlib, json, sys, tomllib

with open("pyproject.toml", "rb") as file:
    tables = tomllib.load(file)
wanted = [sys.version, tables["project"], tables["build-system"]]
print(hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest())
END
)
if [ "$(cat .venv/tarry-installed 2>/dev/null)" != "$wanted" ] || ! [ -x .venv/bin/tarry ]; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' ||
        stop "pip could not install what pyproject.toml names, see above; it needs a package index (network or PIP_INDEX_URL)"
    echo "$wanted" >.venv/tarry-installed
fi

if [ "${1:-}" = --bench ] && [ "$(cat .venv/tarry-bench-installed 2>/dev/null)" != "$wanted" ]; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' ||
        stop "pip could not install what the extra \`bench\` of pyproject.toml names, see above"
    echo "$wanted" >.venv/tarry-bench-installed
fi

[ "${1:-}" = --interpreted ] || .venv/bin/python tools/compile_hot.py
