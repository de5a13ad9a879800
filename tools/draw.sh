#!/usr/bin/env bash
# Lets hypothesis draw new examples for some seconds.  The suite draws the same ones in every run, so
# what is found here was found by chance: it is a bug, but not of the last change.  Exits with 1 then.
set -uo pipefail
cd "$(dirname "$0")/.."

seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
seconds=${SECONDS_MAX:-20}

[ $# -ne 0 ] || set -- $(grep -rl --include='test_*.py' '^from hypothesis' tests)

echo "draw: new examples for $seconds s, SEED=$seed"
# A test that has begun is ended; one that hangs is not waited for.
TARRY_DRAW_SECONDS=$seconds timeout $((seconds + 120)) \
    .venv/bin/pytest -m hypothesis --hypothesis-seed="$seed" "$@"
status=$?
case $status in
0) ;;
1)
    echo "draw: CHANCE FINDS: the examples above were drawn just now, by chance. They are bugs, and"
    echo "draw: older than the change that is tested. See one again, with the name of its test:"
    echo "draw:     make draw SEED=$seed ARGS='TEST'"
    echo "draw: Mend it, and keep the example as an @example of its test."
    ;;
*) echo "draw: no examples could be drawn (pytest's exit code is $status)" ;;
esac
exit $status
