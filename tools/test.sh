#!/usr/bin/env bash
# The whole suite in both forms of the hot modules at once (long tests in one of the two, by their
# file): one worker runs the interpreted form,
# one the compiled form, three more what asks nothing of the form and mostly waits for other programs
# (groups of consumers, single clients, Spark); pytest closes with one line over all.  Where
# nothing is compiled, two workers share the interpreted form.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(.venv/bin/python -c 'import tarry; print(tarry.FORM)')" = compiled ]; then
    exec .venv/bin/pytest --dist each \
        --tx popen//env:TARRY_PURE=1//env:TARRY_TEST_PART=both \
        --tx popen//env:TARRY_PURE=0//env:TARRY_TEST_PART=both \
        --tx popen//env:TARRY_PURE=0//env:TARRY_TEST_PART=groups \
        --tx popen//env:TARRY_PURE=0//env:TARRY_TEST_PART=clients \
        --tx popen//env:TARRY_PURE=0//env:TARRY_TEST_PART=spark "$@"
fi
echo "The hot modules are not compiled: the suite runs in the interpreted form only."
exec env TARRY_PURE=1 .venv/bin/pytest -n 2 "$@"
