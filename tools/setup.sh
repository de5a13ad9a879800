#!/usr/bin/env bash
# Makes .venv with the command tarry, and compiles the hot modules in place.  Costs a third of a
# second when nothing has changed.  What is missing is said in one sentence, and before each long
# step how long it takes.
#
#     tools/setup.sh [--dev] [--bench] [--cluster] [--interpreted] [--patience SECONDS]
#
# --dev: what tests and checks need, too.  --bench: the libraries that `make bench-timer` compares
# with, too.  --cluster: what brokers need for etcd, too.  --interpreted: compile nothing.
# --patience: if this has taken so long, compiling goes on in the background, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
LOG=build/compile.log

dev= bench= cluster= interpreted= patience=
while [ $# -gt 0 ]; do
    case $1 in
    --dev) dev=yes ;;
    --bench) bench=yes ;;
    --cluster) cluster=yes ;;
    --interpreted) interpreted=yes ;;
    --patience) patience=$2 && shift ;;
    *) echo "tools/setup.sh: what is $1?" >&2 && exit 2 ;;
    esac
    shift
done

say() {
    echo "make setup: $*"
}

stop() {
    say "$*" >&2
    exit 1
}

case "$(uname -s)" in
Linux | Darwin) ;;
*) stop "Tarry runs on Linux and macOS; on Windows use WSL." ;;
esac

# Programs in .venv begin with its path: after a move or a renaming none of them starts.
if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    ! grep -qF "$(pwd -P)/.venv" .venv/bin/pip; then
    command -v "$PYTHON" >/dev/null ||
        stop "there is no $PYTHON; install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3.12"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "$PYTHON is $("$PYTHON" -V 2>&1); Tarry needs 3.11 or newer, name one: make setup PYTHON=/path/to/python3.12"
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
        stop "$PYTHON cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv"
    say "making .venv, some 5 s"
    rm -rf .venv
    "$PYTHON" -m venv .venv || stop "making .venv failed, see above"
fi

# What is to be installed stands in two tables of pyproject.toml; their digest tells if it is.
wanted=$(.venv/bin/python - <<'PYTHON_ENDS'
import hashlib, json, sys, tomllib

with open("pyproject.toml", "rb") as file:
    tables = tomllib.load(file)
wanted = [sys.version, tables["project"], tables["build-system"]]
print(hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest())
PYTHON_ENDS
)

# install EXTRA WHAT TIME: an extra of pyproject.toml, unless it is there.
install() {
    [ "$(cat ".venv/tarry-installed-$1" 2>/dev/null)" != "$wanted" ] || ! [ -x .venv/bin/tarry ] || return 0
    say "installing what $2 needs, some $3"
    # The editable install compiles nothing itself: that is done in place, below.
    TARRY_COMPILE=0 .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$1]" ||
        stop "pip could not install what pyproject.toml names, see above; it needs a package index (network or PIP_INDEX_URL)"
    echo "$wanted" >".venv/tarry-installed-$1"
}

install compile "serving" "10 s"
[ -z "$dev" ] || install dev "testing and checking" "two minutes, with Spark"
[ -z "$cluster" ] || [ -n "$dev" ] || install cluster "several brokers" "10 s"
[ -z "$bench" ] || install bench "the comparison of timers" "10 s"

[ -z "$interpreted" ] || exit 0
if [ -z "$patience" ]; then
    exec .venv/bin/python tools/compile_hot.py
fi
.venv/bin/python tools/compile_hot.py --is-due || exec .venv/bin/python tools/compile_hot.py
say "compiling the hot modules, up to a minute; output in $LOG"
mkdir -p build
.venv/bin/python tools/compile_hot.py >$LOG 2>&1 </dev/null &
while kill -0 $! 2>/dev/null; do
    if [ "$SECONDS" -ge "$patience" ]; then
        renice -n 10 -p $! >/dev/null 2>&1 || true
        say "compiling takes longer and goes on in the background; this start is interpreted, which needs about four times the CPU, the next one is compiled"
        exit 0
    fi
    sleep 0.2
done
wait $! || say "compiling failed, see $LOG; this start is interpreted, which needs about four times the CPU"
