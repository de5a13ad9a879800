#!/usr/bin/env bash
# Makes the packages in dist/: the source, a pure wheel that runs everywhere, and a wheel compiled
# for this interpreter and platform.  Each wheel is unpacked and asked which form it runs.  Where
# there is no C compiler the compiled wheel is left out, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=.venv/bin/python

# The form that a wheel runs in, unpacked into a folder of its own.
form_of() {
    rm -rf build/unpacked
    $PYTHON -m pip install --quiet --disable-pip-version-check --no-deps --target build/unpacked "$1"
    env -u TARRY_PURE PYTHONPATH=build/unpacked $PYTHON -c '
import os, tarry, tarry.purgatory, tarry.timer
from tarry.timer import TimerEntry, TimingWheel
assert os.path.abspath(tarry.__file__).startswith(os.path.abspath("build/unpacked")), tarry.__file__
wheel = TimingWheel(0)
assert wheel.add(TimerEntry(445)) and len(wheel.advance(445)) == 1
print(tarry.FORM)'
    rm -rf build/unpacked
}

rm -rf dist
env -u TARRY_COMPILE $PYTHON -m hatchling build -t sdist -t wheel -d dist >/dev/null
pure=$(ls dist/*-py3-none-any.whl)
[ "$(form_of "$pure")" = interpreted ]
echo "$pure: interpreted, for any platform"

missing=$($PYTHON -c '
import sys
sys.path.insert(0, "tools")
import compile_hot
print(compile_hot.what_is_missing() or "")')
if [ -n "$missing" ]; then
    echo "no compiled wheel: $missing"
    exit 0
fi
TARRY_COMPILE=1 $PYTHON -m hatchling build -t wheel -d dist >/dev/null
compiled=$(ls dist/*.whl | grep -v -- '-py3-none-any.whl')
[ "$(form_of "$compiled")" = compiled ]
echo "$compiled: compiled, for this Python and platform"
