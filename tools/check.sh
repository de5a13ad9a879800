#!/usr/bin/env bash
# Everything that can be said about the source without running it.  All checks run, so that one
# call tells all; the last line says which failed.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()

check() {
    local name=$1
    shift
    "$@" || failed+=("$name")
}

check format .venv/bin/ruff format --check --quiet .
check lint .venv/bin/ruff check --quiet .
check types .venv/bin/mypy --no-error-summary
check types-of-tools .venv/bin/mypy --no-error-summary tools
check layers .venv/bin/lint-imports --no-logo
check source .venv/bin/python tools/check_source.py
check words .venv/bin/python tools/check_words.py
check circles .venv/bin/python tools/check_circles.py
check neighbours .venv/bin/python tools/check_neighbours.py
check generated .venv/bin/python tools/generate_messages.py --check
check reference .venv/bin/python tools/generate_reference.py --check
check commands .venv/bin/python tools/generate_commands.py --check
check settings .venv/bin/python tools/generate_settings.py --check
check aio .venv/bin/python tools/generate_aio.py --check
check etcd .venv/bin/python tools/generate_etcd.py --check

if [ ${#failed[@]} -ne 0 ]; then
    echo "make check: failed: ${failed[*]}" >&2
    exit 1
fi
echo "make check: all is well"
