#!/bin/sh
# Nothing of the fault points (src/io/fault.h) is in a release: no symbol, and no name of a point.
# What is compiled here is every file that has one, with the release's flags. TAP.
set -u
dir=$(mktemp -d) cases=0 failed=0
trap 'rm -rf "$dir"' EXIT

report() { # status, name
	cases=$((cases + 1))
	if [ "$1" = 0 ]; then
		echo "ok $cases - $2"
	else
		echo "not ok $cases - $2"
		failed=1
	fi
}

traces() { # build directory -> what its objects have of them
	for source in $sources; do
		nm "$1/${source%.c}.o" | grep ' [A-Za-z] fault_'
		strings -a "$1/${source%.c}.o" | grep -x 'NUMAFIT_FAULT\|half-answer'
	done
}

build() { # variant
	objects=$(for source in $sources; do echo "$dir/$1/${source%.c}.o"; done)
	# shellcheck disable=SC2086
	CFLAGS= CPPFLAGS= MAKEFLAGS= make -s VARIANT="$1" B="$dir/$1" $objects >"$dir/log" 2>&1 || cat "$dir/log"
}

sources=$(grep -l '^#include <io/fault.h>' src/*/*.c)
[ "$(echo "$sources" | wc -l)" -ge 5 ]
report $? "there are files with fault points"
build release
[ -e "$dir/release/src/io/fault.o" ] && [ -z "$(traces "$dir/release")" ]
report $? "a release has nothing of them"
build debug
[ "$(traces "$dir/debug" | sort -u | grep -c .)" -ge 4 ]
report $? "a build for tests has them"

echo "1..$cases"
exit $failed
