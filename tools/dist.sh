#!/usr/bin/env bash
# Makes the packages: the source, a pure wheel that runs everywhere, and a wheel compiled for this
# interpreter and platform.  Each wheel is unpacked and asked which form it runs.  Where there is
# no C compiler the compiled wheel is left out, with the reason.
#
#     tools/dist.sh [--pure] [DIRECTORY]
#
# DIRECTORY is dist if none is named; what lies in it is removed.  --pure: no compiled wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=.venv/bin/python
pure_only=
if [ "${1:-}" = --pure ]; then
    pure_only=yes
    shift
fi
DIST=${1:-dist}

unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT

# The form that a wheel runs in, unpacked into a folder of its own.
form_of() {
    rm -rf "${unpacked:?}"/*
    $PYTHON -m pip install --quiet --disable-pip-version-check --no-deps --target "$unpacked" "$1"
    env -u TARRY_PURE PYTHONPATH="$unpacked" $PYTHON -c '
import sys, tarry, tarry.purgatory
from tarry.timer import TimerEntry, TimingWheel
assert tarry.__file__.startswith(sys.argv[1]), tarry.__file__
wheel = TimingWheel(0)
assert wheel.add(TimerEntry(445)) and len(wheel.advance(445)) == 1
print(tarry.FORM)' "$unpacked"
}

rm -rf "$DIST"
TARRY_COMPILE=0 $PYTHON -m hatchling build -t sdist -t wheel -d "$DIST" >/dev/null 2>&1
pure=$(ls "$DIST"/*-py3-none-any.whl)
[ "$(form_of "$pure")" = interpreted ]
echo "$pure: interpreted, for any platform"

[ -z "$pure_only" ] || exit 0

missing=$($PYTHON -c '
import sys
sys.path.insert(0, "tools")
import compile_hot
print(compile_hot.what_is_missing() or "")')
if [ -n "$missing" ]; then
    echo "no compiled wheel: $missing"
    exit 0
fi
TARRY_COMPILE=1 $PYTHON -m hatchling build -t wheel -d "$DIST" >/dev/null
compiled=$(ls "$DIST"/*.whl | grep -v -- '-py3-none-any.whl')
[ "$(form_of "$compiled")" = compiled ]
echo "$compiled: compiled, for this Python and platform"
