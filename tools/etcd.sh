#!/usr/bin/env bash
# Prints the path of an etcd that Tarry accepts: the one that was built here, one on the path, or
# one that Go builds now, which takes a minute or more of CPU once.  Otherwise it says in one
# sentence what is missing.  `tools/etcd.sh 3.5` is for the older release that Tarry accepts as well,
# which tests try too.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = 3.5 ]; then
    BUILT=$PWD/build/etcd/etcd-3.5
    MODULES=etcd-3.5.mod
    WANTED="3.5.28 or newer of 3.5"
else
    BUILT=$PWD/build/etcd/etcd
    MODULES=go.mod
    WANTED="3.6.9 or newer"
fi

# accepted PROGRAM: its release is 3.5.28 or newer of 3.5, or 3.6.9 or newer.
accepted() {
    local version major minor patch
    version=$("$1" --version 2>/dev/null | sed -n 's/^etcd Version: //p')
    IFS=. read -r major minor patch <<<"$version"
    [[ "$major$minor$patch" =~ ^[0-9]+$ ]] || return 1
    if [ "$MODULES" != go.mod ]; then
        [ "$major.$minor" = 3.5 ] && [ "$patch" -ge 28 ]
        return
    fi
    [ "$major" -gt 3 ] || [ "$minor" -gt 6 ] || { [ "$minor" = 6 ] && [ "$patch" -ge 9 ]; } ||
        { [ "$minor" = 5 ] && [ "$patch" -ge 28 ]; }
}

if [ -x "$BUILT" ]; then
    echo "$BUILT"
    exit
fi
if found=$(command -v etcd) && accepted "$found"; then
    echo "$found"
    exit
fi
command -v go >/dev/null || {
    echo "there is no etcd $WANTED on the path, and no Go that could build one: install one of the two" >&2
    exit 1
}
mkdir -p build/etcd
# Two who ask at once build one.
exec 9>build/etcd/lock
flock 9 2>/dev/null || true
if ! [ -x "$BUILT" ]; then
    echo "make etcd: building etcd by Go, some minutes" >&2
    (cd tools/etcd && go build -modfile=$MODULES -ldflags='-s -w' -o "$BUILT.unfinished" .) >&2 || {
        echo "Go could not build etcd, see above; it needs the module proxy (network or GOPROXY)" >&2
        exit 1
    }
    mv "$BUILT.unfinished" "$BUILT"
fi
echo "$BUILT"
