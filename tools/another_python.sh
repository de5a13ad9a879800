#!/usr/bin/env bash
# Runs the tests of the client and of the command line on another Python, interpreted, in an
# environment of its own below build/: threads, the end of a process and asyncio differ from one
# Python to the next.  Where there is no such Python it says so in one line, and that is no failure.
#
#     tools/another_python.sh VERSION [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1 && shift
venv=build/python-$version

# On the PATH, or among the versions of pyenv, whether its shims are on the PATH or not.
find_python() {
    local name=python$version root
    if "$name" -c '' 2>/dev/null; then
        command -v "$name"
        return
    fi
    for root in "${PYENV_ROOT:-}" "$(pyenv root 2>/dev/null || true)" "${HOME:-}/.pyenv"; do
        [ -n "$root" ] || continue
        for python in "$root/versions/$version".*/bin/"$name"; do
            if "$python" -c '' 2>/dev/null; then
                echo "$python"
                return
            fi
        done
    done
}

python=$(find_python)
if [ -z "$python" ]; then
    echo "Python $version: left out, there is none on the PATH and none of pyenv's"
    exit 0
fi
wanted="$("$python" -V) $(cksum <pyproject.toml)"
if [ "$(cat "$venv/tarry-installed" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    # Without Spark and without the clients of others, which need minutes.
    TARRY_COMPILE=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable '.[arrow,cluster,fast,testing]' \
        'hypothesis>=6.100' 'jsonschema>=4.20' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6' 'uvloop>=0.19'
    echo "$wanted" >"$venv/tarry-installed"
fi
echo "Python $version: the tests of the client and of the command line, interpreted"
# Left out is what needs Spark, or the clients that a page compares ours with.
exec env TARRY_PURE=1 "$venv/bin/python" -m pytest -p no:cacheprovider -n 2 -r f \
    --ignore-glob='tests/unit/cli/test_spark_*' \
    --ignore=tests/unit/cli/test_backfill_command.py \
    --ignore=tests/unit/cli/test_event_commands.py \
    --ignore=tests/unit/client/test_migration_page.py \
    "$@" \
    tests/unit/client tests/unit/cli tests/transcripts tests/contracts/test_client_contract.py \
    tests/processes/test_client_ends.py
